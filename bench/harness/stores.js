// @ts-check
/** Stores by name, for benches that take `--store`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memory } from '../../dist/stores/memory/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'
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
 * @typedef {(clock: Clock) => { store: Store, remove?: () => void }} Maker
 * @type {Record<string, Maker>}
 */
const MAKERS = {
  memory: (clock) => ({ store: memory({ clock }) }),
  sqlite: (clock) => {
    const { path, remove } = temporaryFile()
    return { store: sqlite({ path, clock }), remove }
  },
}

/**
 * @param {string} name
 * @returns {Promise<BenchStore>}
 */
export async function openStore(name) {
  const make = MAKERS[name]
  if (make === undefined) throw new UsageError(`store "${name}" is unknown: ${Object.keys(MAKERS).join(', ')} are`)
  const clock = leapingClock()
  const { store, remove } = make(clock)
  if (remove !== undefined) process.once('exit', remove)
  await store.open()
  const close = async () => {
    await store.close()
    remove?.()
  }
  return { name, store, skip: async (ms) => clock.leap(ms), close }
}

/** The path of a database that is not there yet, in a folder of its own. */
export function temporaryFile() {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-bench-'))
  return { path: join(folder, 'bench.db'), remove: () => rmSync(folder, { recursive: true, force: true }) }
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
