/**
 * The shapes of a script's parameters and results, so that both sides go by names. Both travel as one JSON text; a shape says
 * what it is in TypeScript.
 *
 * Lua has one kind of table: an empty list comes back as `{}`. And cjson writes 14 digits of a number, so tokens and other
 * long numbers come back as texts. `read` makes both right again.
 */
export interface Shape<Value> {
  readonly read: (answer: unknown) => Value
  /** The names inside, for the test that compares them with the script's. */
  readonly names: readonly string[]
}

export type ValueOf<S> = S extends Shape<infer Value> ? Value : never

type Fields = Readonly<Record<string, Shape<unknown>>>
type Optional<F extends Fields> = {
  [Name in keyof F]: undefined extends ValueOf<F[Name]> ? Name : never
}[keyof F]

/** What may be undefined may be left out. */
export type Named<F extends Fields> = {
  readonly [Name in Exclude<keyof F, Optional<F>>]: ValueOf<F[Name]>
} & { readonly [Name in Optional<F>]?: ValueOf<F[Name]> }

export const text: Shape<string> = { read: String, names: [] }
export const number: Shape<number> = { read: Number, names: [] }
export const flag: Shape<boolean> = { read: (answer) => answer === true, names: [] }

/** One of some words. */
export function oneOf<Word extends string>(..._words: readonly Word[]): Shape<Word> {
  return { read: (answer) => answer as Word, names: [] }
}

export function maybe<Value>(shape: Shape<Value>): Shape<Value | undefined> {
  const read = (answer: unknown) =>
    answer === undefined || answer === null || answer === false ? undefined : shape.read(answer)
  return { read, names: shape.names }
}

export function listOf<Value>(shape: Shape<Value>): Shape<readonly Value[]> {
  return { read: (answer) => (Array.isArray(answer) ? answer.map(shape.read) : []), names: shape.names }
}

export function named<F extends Fields>(fields: F): Shape<Named<F>> {
  const entries = Object.entries(fields)
  const read = (answer: unknown) => {
    const given = answer as Readonly<Record<string, unknown>>
    const value: Record<string, unknown> = {}
    for (const [name, shape] of entries) {
      const own = shape.read(given[name])
      if (own !== undefined) value[name] = own
    }
    return value as Named<F>
  }
  return { read, names: entries.flatMap(([name, shape]) => [name, ...shape.names]) }
}
