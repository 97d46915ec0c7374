// @ts-check
/** The input of the bench, the same expressions and instants each time. */

export const ZONES = ['Europe/Berlin', 'America/New_York']

/** Common expressions, which all three libraries read the same way. */
export const EXPRESSIONS = [
  '* * * * *',
  '*/5 * * * *',
  '0 * * * *',
  '0 9 * * 1-5',
  '30 4 * * *',
  '15,45 8-18 * * 1-5',
  '0 0 1 * *',
  '0 6 * * 0',
  '0 18 L * *',
  '0 0 1 1,4,7,10 *',
]

const FROM = Date.UTC(2026, 0, 1)
const YEARS_MS = 10 * 365 * 86_400_000

/**
 * Instants spread over ten years.
 * @param {number} count
 * @returns {import('./calculators.js').Moment[]}
 */
export function moments(count) {
  const random = randomFrom(1)
  return Array.from({ length: count }, () => {
    const ms = FROM + Math.floor(random() * YEARS_MS)
    return { ms, date: new Date(ms) }
  })
}

/** The generator below has about a million expressions; near that number new ones are hard to find. */
export const MAX_DISTINCT = 500_000

/**
 * Distinct expressions of common kinds, mixed.
 * @param {number} count
 * @returns {string[]}
 */
export function distinctExpressions(count) {
  const random = randomFrom(2)
  /** @type {(low: number, high: number) => number} */
  const pick = (low, high) => low + Math.floor(random() * (high - low + 1))
  /** @type {(() => string)[]} */
  const kinds = [
    () => `${pick(0, 59)} ${pick(0, 23)} * * *`,
    () => `${pick(0, 59)} ${pick(0, 23)} * * ${pick(0, 2)}-${pick(3, 6)}`,
    () => `${pick(0, 29)},${pick(30, 59)} ${pick(0, 11)}-${pick(12, 23)} * * MON-FRI`,
    () => `${pick(0, 29)}-59/${pick(2, 30)} ${pick(0, 11)}-${pick(12, 23)} * * *`,
    () => `${pick(0, 59)} ${pick(0, 23)} ${pick(1, 28)} * *`,
    () => `${pick(0, 59)} ${pick(0, 23)} L ${pick(1, 6)},${pick(7, 12)} *`,
    () => `${pick(0, 59)} */${pick(2, 12)} ${pick(1, 14)}-${pick(15, 28)} * *`,
    () => `${pick(0, 59)} ${pick(0, 59)} ${pick(0, 23)} * * ${pick(0, 6)}`,
  ]
  /** @type {Set<string>} */
  const found = new Set()
  while (found.size < count) found.add(/** @type {() => string} */ (kinds[pick(0, kinds.length - 1)])())
  return [...found]
}

/**
 * Numbers in [0, 1), the same ones for the same seed (mulberry32).
 * @param {number} seed
 */
function randomFrom(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
