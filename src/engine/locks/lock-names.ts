import { quote } from '../../core/errors.js'

const MAX_NAMES = 5

/** `lock "import", lock "report" and 3 more`, or nothing. */
export function lockNames(names: readonly string[]): string {
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  return (
    names
      .slice(0, MAX_NAMES)
      .map((name) => `lock ${quote(name)}`)
      .join(', ') + more
  )
}

/** Joins the names of handlers and of locks. */
export function runningText(handlers: string, locks: string): string {
  return [handlers, locks].filter((text) => text !== '').join(', ')
}
