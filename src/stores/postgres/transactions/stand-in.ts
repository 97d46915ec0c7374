/** An object as it is, to `instanceof` too, with some of its members replaced. */
export function standIn<Target extends object>(target: Target, members: Readonly<Record<string, unknown>>): Target {
  return new Proxy(target, {
    get(_, name) {
      if (typeof name === 'string' && Object.hasOwn(members, name)) return members[name]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' && name !== 'constructor' ? value.bind(target) : value
    },
  })
}

/** The text of a statement, in any of the forms that `pg` takes. */
export function statementText(query: unknown): string {
  if (typeof query === 'string') return query
  const text = (query as { readonly text?: unknown } | null | undefined)?.text
  return typeof text === 'string' ? text : ''
}
