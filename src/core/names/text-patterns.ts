/** Lists of texts in which `*` stands for any text: `orders.new` is exactly this text, `orders.*` all that begin with `orders.`. */
export type Matches = (text: string) => boolean

export function textPatterns(patterns: readonly string[]): Matches {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map((pattern) => pattern.split('*'))
  return (text) => exact.has(text) || globs.some((parts) => matchesGlob(parts, text))
}

/** Finds each part at its first occurrence, without backtracking, so the time is linear. */
function matchesGlob([first = '', ...rest]: readonly string[], text: string): boolean {
  const last = rest.at(-1) ?? ''
  const end = text.length - last.length
  if (!text.startsWith(first) || !text.endsWith(last) || end < first.length) return false
  let from = first.length
  for (const part of rest.slice(0, -1)) {
    const at = text.indexOf(part, from)
    if (at < 0 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}
