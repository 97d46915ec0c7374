/** Lists in words: the set bits of a mask as runs, and runs as text. */

/** Stands for a part of a description that restricts nothing. */
export const NO_WORDS = ''

/** Consecutive values, both ends included. Over the end of a field they count on: Friday to Monday is 5 to 8. */
export interface Run {
  readonly from: number
  readonly to: number
}

/** The set bits of a mask with `size` values as runs. Only in a field that wraps around can a run go over its end. */
export function runsOf(mask: number, size: number, wraps: boolean): readonly Run[] {
  const runs: { from: number; to: number }[] = []
  for (let value = 0; value < size; value += 1) {
    if (((mask >>> value) & 1) === 0) continue
    const last = runs.at(-1)
    if (last?.to === value - 1) last.to = value
    else runs.push({ from: value, to: value })
  }
  const [first] = runs
  const last = runs.at(-1)
  if (!wraps || first === undefined || last === undefined || first === last || first.from > 0 || last.to < size - 1) {
    return runs
  }
  return [...runs.slice(1, -1), { from: last.from, to: first.to + size }]
}

/** "January, April through June and December". A run of two is two entries. */
export function listWords(runs: readonly Run[], name: (value: number) => string, and = 'and'): string {
  const entries = runs.flatMap(({ from, to }) => {
    if (from === to) return [name(from)]
    return to - from === 1 ? [name(from), name(to)] : [`${name(from)} through ${name(to)}`]
  })
  const last = entries.pop() ?? ''
  return entries.length === 0 ? last : `${entries.join(', ')} ${and} ${last}`
}
