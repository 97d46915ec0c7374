// @ts-check
/** Reports how late runs start. On servers it then measures a raw claim of one batch, as a reference. */
import { median, percentile } from './measure.js'
import { checkpoint } from './postgres.js'
import { openRawServer, RAW_BATCH } from './raw.js'
import { report, tenths } from './report.js'

const CLAIMS = 20

/**
 * @param {Readonly<Record<string, unknown> & { store: string }>} head
 * @param {readonly (readonly number[])[]} rounds Milliseconds, round by round.
 */
export async function reportLateness(head, rounds) {
  const over = (/** @type {number} */ part) => tenths(median(rounds.map((lateMs) => percentile(lateMs, part))))
  const all = rounds.flat()
  report({
    ...head,
    ...{ p50Ms: over(0.5), p99Ms: over(0.99), maxMs: tenths(all.reduce((max, late) => Math.max(max, late), 0)) },
    ...(head.store === 'postgres' || head.store === 'redis' ? await rawClaims(head.store) : {}),
  })
}

/** @param {string} store */
async function rawClaims(store) {
  const raw = await openRawServer(store)
  await raw.enqueueMany(CLAIMS * RAW_BATCH)
  if (store === 'postgres') await checkpoint()
  /** @type {number[]} */
  const tookMs = []
  for (let claim = 0; claim < CLAIMS; claim += 1) {
    const startedAt = performance.now()
    await raw.claim()
    tookMs.push(performance.now() - startedAt)
  }
  await raw.close()
  const ms = median(tookMs)
  return {
    reference: `raw claim of ${RAW_BATCH}`,
    referencePerSecond: Math.round((RAW_BATCH / ms) * 1_000),
    rawClaimMs: tenths(ms),
  }
}
