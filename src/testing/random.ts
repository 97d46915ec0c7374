/** Random numbers that the same seed repeats, to reproduce a failure. */
export interface Random {
  /** In [0, 1). */
  next(): number
  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number
  chance(probability: number): boolean
  pick<Item>(items: readonly [Item, ...Item[]]): Item
}

/** Mulberry32: small and fast. Not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  const integer = (low: number, high: number) => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    pick: ([first, ...rest]) => {
      const at = integer(0, rest.length)
      return at === 0 ? first : (rest[at - 1] ?? first)
    },
  }
}
