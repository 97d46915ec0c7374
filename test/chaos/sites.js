// @ts-check
/** Where a store lives during a chaos, and what can be done to it there. */

import { wrongClock } from '../servers/faketime.js'
import { startOwnPostgres } from '../servers/postgres.js'
import { proxy } from './proxy.js'
import { randomFrom } from './random.js'

/**
 * @typedef {import('./stores.js').StoreKind} StoreKind
 * @typedef {import('./plan.js').Fault} Fault
 *
 * @typedef {object} Site
 * @property {readonly import('./plan.js').FaultKind[]} kinds what can happen here
 * @property {number} leaseMs of the processes
 * @property {StoreKind} store for those whom nothing is done to
 * @property {(at: number) => StoreKind} storeOf as the process in a place reaches it
 * @property {(at: number) => Record<string, string>} environmentOf
 * @property {(at: number) => number} skewOf how wrong a process's clock is
 * @property {(fault: Fault, sleep: (ms: number) => Promise<void>) => Promise<void>} strike resolves when it is over
 * @property {() => Promise<void>} close
 *
 * @typedef {{ name: 'sqlite', path: string } | { name: 'postgres', liveness?: import('./stores.js').Liveness }} SiteKind
 */

const PROCESS_FAULTS = /** @type {const} */ (['kill', 'stop', 'term'])
const MAX_SKEW_MS = 600_000

/**
 * @param {SiteKind} kind
 * @param {number} processes
 * @param {number} seed
 * @returns {Promise<Site>}
 */
export async function openSite(kind, processes, seed) {
  return kind.name === 'sqlite' ? fileSite(kind) : postgresSite(processes, seed, kind.liveness ?? 'lease')
}

/** @param {StoreKind} store @returns {Site} */
function fileSite(store) {
  return {
    kinds: PROCESS_FAULTS,
    leaseMs: 2_000,
    store,
    storeOf: () => store,
    environmentOf: () => ({}),
    // All processes on a file share the host's clock, and it rules.
    skewOf: () => 0,
    strike: async () => {},
    close: async () => {},
  }
}

/**
 * @param {number} processes
 * @param {number} seed
 * @param {import('./stores.js').Liveness} liveness of the processes
 * @returns {Promise<Site>}
 */
async function postgresSite(processes, seed, liveness) {
  const random = randomFrom(seed + 1)
  const places = Array.from({ length: processes }, (_, at) => at)
  // The first two are as wrong as can be, one each way.
  const skews = places.map((at) => (at < 2 ? 1 - 2 * at : random() * 2 - 1) * MAX_SKEW_MS)
  const environments = skews.map((skew) => wrongClock(Math.round(skew)))
  const server = await startOwnPostgres()
  const port = Number(new URL(server.url).port)
  const proxies = await Promise.all(places.map(() => proxy(port, random)))
  const urls = proxies.map((own) => Object.assign(new URL(server.url), { port: String(own.port) }).href)

  /** @type {Site['strike']} */
  async function strike({ kind, process, forMs }, sleep) {
    const own = proxies[process]
    if (own === undefined) return
    if (kind === 'crash') {
      await server.crash()
      await sleep(forMs)
      await server.restart()
    } else if (kind === 'cut' || kind === 'lose') own.doom(kind)
    else {
      if (kind === 'sever') own.sever()
      else own.delay(forMs / 2)
      await sleep(forMs)
      own.heal()
    }
  }

  return {
    kinds: [...PROCESS_FAULTS, 'cut', 'lose', 'sever', 'delay', 'crash'],
    // Long enough that a busy machine's delays are small beside it.
    leaseMs: 4_000,
    store: { name: 'postgres', url: server.url, liveness: 'lease' },
    storeOf: (at) => ({ name: 'postgres', url: urls[at] ?? '', liveness }),
    environmentOf: (at) => environments[at] ?? {},
    skewOf: (at) => skews[at] ?? 0,
    strike,
    async close() {
      await Promise.all(proxies.map((own) => own.close()))
      await server.stop()
    },
  }
}
