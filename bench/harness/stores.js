// @ts-check
/** Stores by name, for benches that take `--store`. */
import { memory } from '../../dist/stores/memory/index.js'
import { UsageError } from './usage-error.js'

/**
 * @typedef {import('../../dist/core/store.js').Store} Store
 * @typedef {import('../../dist/core/clock.js').Clock} Clock
 * @typedef {object} BenchStore
 * @property {string} name
 * @property {Store} store
 * @property {(ms: number) => Promise<void>} skip Lets the store's clock jump.
 * @property {() => Promise<void>} close
 */

/**
 * @param {string} name
 * @returns {Promise<BenchStore>}
 */
export async function openStore(name) {
  if (name !== 'memory') throw new UsageError(`store "${name}" is unknown: memory is`)
  const clock = leapingClock()
  const store = memory({ clock })
  await store.open()
  return { name, store, skip: async (ms) => clock.leap(ms), close: () => store.close() }
}

/** The system's clock, with jumps: a backlog of a thousand seconds is made at once. */
function leapingClock() {
  let offset = 0
  return {
    now: () => Date.now() + offset,
    monotonic: () => performance.now(),
    /** @param {number} delayMs @param {() => void} callback */
    after(delayMs, callback) {
      const timer = setTimeout(callback, delayMs)
      return () => clearTimeout(timer)
    },
    /** @param {number} ms */
    leap(ms) {
      offset += ms
    },
  }
}
