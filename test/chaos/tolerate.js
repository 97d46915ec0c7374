// @ts-check
/**
 * What docs/postgres.md ("High availability") names for a failover that loses writes. Such findings are counted, and are no
 * violations. An id that is used twice, or a token that falls, is never tolerated.
 */

/** What the handlers did is no longer known to the store, or is done again while the first attempt still runs. */
const LAST_WRITES = [
  /^run \S+ was settled, and the store does not know it/,
  /^event \S+ belongs to two runs/,
  /^attempt \d+ of run \S+ started twice/,
  /was settled by a stale attempt/,
  /^run \S+ was settled twice/,
  /^\d+ acknowledged enqueues are lost/,
  / overlapped( for \d+ ms)?$/,
  /, began in this order$/,
]

/** Both primaries give out the same key. */
const ONE_PRIMARY = [...LAST_WRITES, /^token \d+ of .* was given to/]

/** @type {Record<'nothing' | 'last writes' | 'one primary', readonly RegExp[]>} */
const TOLERATED = { nothing: [], 'last writes': LAST_WRITES, 'one primary': ONE_PRIMARY }

/**
 * @param {import('./verify.js').Findings} findings
 * @param {keyof typeof TOLERATED} losses
 * @returns {import('./verify.js').Findings}
 */
export function tolerate({ violations, late, counts }, losses) {
  const isTolerated = (/** @type {string} */ violation) => TOLERATED[losses].some((known) => known.test(violation))
  const undone = violations.filter(isTolerated)
  return {
    violations: violations.filter((violation) => !isTolerated(violation)),
    late,
    counts: { ...counts, undone: undone.length },
  }
}
