/** The name with the smallest edit distance, if it is small. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  let best: string | undefined
  let fewest = Math.max(1, Math.floor(given.length / 3)) + 1
  for (const name of names) {
    if (Math.abs(name.length - given.length) >= fewest) continue
    const changes = editDistance(given.toLowerCase(), name.toLowerCase())
    if (changes < fewest) [best, fewest] = [name, changes]
  }
  return best
}

/** How many letters to add, drop or change, or neighbours to swap, to make one text of the other. */
function editDistance(one: string, other: string): number {
  let before: number[] = []
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1
      const isSwap = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      const swapped = isSwap ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same, swapped))
    }
    before = row
    row = next
  }
  return row.at(-1) ?? 0
}
