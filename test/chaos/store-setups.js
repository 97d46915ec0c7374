// @ts-check
/** The setup of each store in a chaos run, and the faults that can be injected into it. */

import { startPgBouncer } from '../servers/pgbouncer.js'
import { startOwnPostgres } from '../servers/postgres.js'
import { clockSkews } from './clock-skews.js'
import { failoverSetup } from './failover-setup.js'
import { CONNECTION_FAULTS, PROCESS_FAULTS } from './plan.js'
import { injectConnectionFault, proxy } from './proxy.js'
import { randomFrom } from './random.js'
import { clusterSetup, redisSetup } from './redis-setups.js'

/**
 * @typedef {import('./stores.js').StoreKind} StoreKind
 * @typedef {import('./plan.js').Fault} Fault
 *
 * @typedef {object} StoreSetup
 * @property {readonly import('./plan.js').FaultKind[]} kinds supported faults
 * @property {readonly import('./plan.js').FaultKind[]} outages faults after which all processes must recover without a restart
 * @property {number} leaseMs of the processes
 * @property {number} clockErrorMs the largest difference between the store's own clocks
 * @property {'nothing' | 'last writes' | 'one primary'} [losses] what its faults may undo; nothing by default
 * @property {boolean} frozenHoldsStore whether a frozen process can block all writes of the others
 * @property {StoreKind} store for the operator, without faults
 * @property {(at: number) => StoreKind} storeOf for the process in a slot, through its proxy if there is one
 * @property {(at: number) => Record<string, string>} environmentOf
 * @property {(at: number) => number} skewOf a process's clock skew
 * @property {(fault: Fault, sleep: (ms: number) => Promise<void>) => Promise<void>} inject resolves when the fault is over
 * @property {() => Promise<void>} close
 *
 * @typedef {{ name: 'sqlite', path: string }} SqliteSetup
 * @typedef {{ name: 'postgres', liveness?: import('./stores.js').Liveness, isPooled?: boolean, failover?: import('./failover-setup.js').Failover }} PostgresSetup
 * @typedef {SqliteSetup | PostgresSetup | { name: 'redis' | 'redis-cluster' }} StoreSetupKind
 */

/**
 * @param {StoreSetupKind} kind
 * @param {number} processes
 * @param {number} seed
 * @returns {Promise<StoreSetup>}
 */
export async function openStoreSetup(kind, processes, seed) {
  switch (kind.name) {
    case 'sqlite':
      return sqliteSetup(kind)
    case 'postgres':
      return kind.failover === undefined
        ? postgresSetup(processes, seed, kind)
        : failoverSetup(processes, seed, kind.failover)
    case 'redis':
      return redisSetup(processes, seed)
    case 'redis-cluster':
      return clusterSetup(processes, seed)
  }
}

/** @param {StoreKind} store @returns {StoreSetup} */
function sqliteSetup(store) {
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
    inject: async () => {},
    close: async () => {},
  }
}

/**
 * @param {number} processes
 * @param {number} seed
 * @param {PostgresSetup} kind `isPooled` puts a PgBouncer in transaction mode between the processes and the server
 * @returns {Promise<StoreSetup>}
 */
async function postgresSetup(processes, seed, { liveness = 'lease', isPooled = false }) {
  const random = randomFrom(seed + 1)
  const clocks = clockSkews(processes, random)
  const server = await startOwnPostgres()
  const pooler = isPooled ? await startPgBouncer(server.url) : undefined
  const entrance = new URL(pooler?.url ?? server.url)
  const proxies = await Promise.all(Array.from({ length: processes }, () => proxy(Number(entrance.port), random)))
  const urls = proxies.map((own) => Object.assign(new URL(entrance), { port: String(own.port) }).href)

  /** @type {StoreSetup['inject']} */
  async function inject(fault, sleep) {
    if (fault.kind !== 'crash') return injectConnectionFault(proxies[fault.process], fault, sleep)
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
    inject,
    async close() {
      await Promise.all(proxies.map((own) => own.close()))
      await pooler?.stop()
      await server.stop()
    },
  }
}
