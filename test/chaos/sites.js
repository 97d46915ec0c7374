// @ts-check
/** The setup of each store in a chaos run, and the faults that can be injected into it. */

import { startPgBouncer } from '../servers/pgbouncer.js'
import { startOwnPostgres } from '../servers/postgres.js'
import { CONNECTION_FAULTS, PROCESS_FAULTS } from './plan.js'
import { proxy, strikeConnections } from './proxy.js'
import { randomFrom } from './random.js'
import { clusterSite, redisSite } from './redis-sites.js'
import { wrongClocks } from './wrong-clocks.js'

/**
 * @typedef {import('./stores.js').StoreKind} StoreKind
 * @typedef {import('./plan.js').Fault} Fault
 *
 * @typedef {object} Site
 * @property {readonly import('./plan.js').FaultKind[]} kinds supported faults
 * @property {readonly import('./plan.js').FaultKind[]} outages faults after which all processes must recover without a restart
 * @property {number} leaseMs of the processes
 * @property {number} clockErrorMs the largest difference between the store's own clocks
 * @property {boolean} frozenHoldsStore whether a frozen process can block all writes of the others
 * @property {StoreKind} store for the operator, without faults
 * @property {(at: number) => StoreKind} storeOf as the process in a place connects to it
 * @property {(at: number) => Record<string, string>} environmentOf
 * @property {(at: number) => number} skewOf a process's clock skew
 * @property {(fault: Fault, sleep: (ms: number) => Promise<void>) => Promise<void>} strike resolves when the fault is over
 * @property {() => Promise<void>} close
 *
 * @typedef {{ name: 'sqlite', path: string }} SqliteSite
 * @typedef {{ name: 'postgres', liveness?: import('./stores.js').Liveness, isPooled?: boolean }} PostgresSite
 * @typedef {SqliteSite | PostgresSite | { name: 'redis' | 'redis-cluster' }} SiteKind
 */

/**
 * @param {SiteKind} kind
 * @param {number} processes
 * @param {number} seed
 * @returns {Promise<Site>}
 */
export async function openSite(kind, processes, seed) {
  switch (kind.name) {
    case 'sqlite':
      return fileSite(kind)
    case 'postgres':
      return postgresSite(processes, seed, kind)
    case 'redis':
      return redisSite(processes, seed)
    case 'redis-cluster':
      return clusterSite(processes, seed)
  }
}

/** @param {StoreKind} store @returns {Site} */
function fileSite(store) {
  return {
    kinds: PROCESS_FAULTS,
    outages: [],
    leaseMs: 2_000,
    clockErrorMs: 0,
    // A frozen process may be in the middle of a write, and a file has one writer.
    frozenHoldsStore: true,
    store,
    storeOf: () => store,
    environmentOf: () => ({}),
    // All processes on a file share the host's clock, which is the store's clock.
    skewOf: () => 0,
    strike: async () => {},
    close: async () => {},
  }
}

/**
 * @param {number} processes
 * @param {number} seed
 * @param {PostgresSite} kind `isPooled` puts a PgBouncer in transaction mode between the processes and the server
 * @returns {Promise<Site>}
 */
async function postgresSite(processes, seed, { liveness = 'lease', isPooled = false }) {
  const random = randomFrom(seed + 1)
  const clocks = wrongClocks(processes, random)
  const server = await startOwnPostgres()
  const pooler = isPooled ? await startPgBouncer(server.url) : undefined
  const entrance = new URL(pooler?.url ?? server.url)
  const proxies = await Promise.all(Array.from({ length: processes }, () => proxy(Number(entrance.port), random)))
  const urls = proxies.map((own) => Object.assign(new URL(entrance), { port: String(own.port) }).href)

  /** @type {Site['strike']} */
  async function strike(fault, sleep) {
    if (fault.kind !== 'crash') return strikeConnections(proxies[fault.process], fault, sleep)
    await server.crash()
    await sleep(fault.forMs)
    await server.restart()
  }

  return {
    kinds: [...PROCESS_FAULTS, ...CONNECTION_FAULTS, 'crash'],
    outages: ['crash'],
    // Long enough that a busy machine's delays are small in comparison.
    leaseMs: 4_000,
    clockErrorMs: 0,
    frozenHoldsStore: false,
    store: { name: 'postgres', url: server.url, liveness: 'lease' },
    storeOf: (at) => ({ name: 'postgres', url: urls[at] ?? '', liveness }),
    ...clocks,
    strike,
    async close() {
      await Promise.all(proxies.map((own) => own.close()))
      await pooler?.stop()
      await server.stop()
    },
  }
}
