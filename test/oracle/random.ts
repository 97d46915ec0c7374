/** Seeded random numbers: the seed alone reproduces a failing case. */
export interface Random {
  /** An integer from 0 to n - 1. */
  below(n: number): number
  /** An integer from `from` to `to`, inclusive. */
  between(from: number, to: number): number
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
}

export function random(seed: number): Random {
  // Scrambles the seed, so that neighbouring seeds give unrelated numbers.
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0
  const unit = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (n: number) => Math.floor(unit() * n)
  return {
    below,
    between: (from, to) => from + below(to - from + 1),
    chance: (probability) => unit() < probability,
    pick: (items) => {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error('nothing to pick from')
      return item
    },
  }
}
