// @ts-check
/**
 * A Postgres primary and its streaming standby, behind an address that moves: each process has a proxy, and all proxies
 * lead to the current primary. After a failover the new primary gets a standby of its own, for the next one.
 *
 * - `sync`: the primary crashes; the standby has everything that was acknowledged.
 * - `silent`: the same, but all connections stay open and silent, as when a host dies.
 * - `async`: the standby lacks the last second.
 * - `two-primaries`: the primary goes on, and for a while half of the new connections reach it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startOwnPostgres, startStandby } from '../servers/postgres.js'
import { clockSkews } from './clock-skews.js'
import { PROCESS_FAULTS } from './plan.js'
import { injectConnectionFault, proxy } from './proxy.js'
import { randomFrom } from './random.js'

/** @typedef {'sync' | 'silent' | 'async' | 'two-primaries'} Failover */
/** @type {readonly Failover[]} */
export const FAILOVERS = ['sync', 'silent', 'async', 'two-primaries']

const STANDBY = 'standby'
const LAG_MS = 1_000
const TWO_PRIMARIES_MS = 8_000

/** @param {string} url */
const portOf = (url) => Number(new URL(url).port)

/**
 * @param {number} processes
 * @param {number} seed
 * @param {Failover} failover
 * @returns {Promise<import('./store-setups.js').StoreSetup>}
 */
export async function failoverSetup(processes, seed, failover) {
  const random = randomFrom(seed + 1)
  const pair = new Pair(failover !== 'async')
  await pair.start()
  const address = () => pair.port
  // The operator has an address of its own.
  const proxies = await Promise.all(Array.from({ length: processes + 1 }, () => proxy(address, random)))
  const urls = proxies.map(({ port }) => `postgres://belfry@127.0.0.1:${port}/postgres`)
  let last = Promise.resolve()

  async function failOver() {
    await pair.isReady
    if (failover === 'two-primaries') {
      await pair.promote()
      await pair.isReady
      return
    }
    if (failover === 'async') await pair.loseStandby()
    if (failover === 'silent') for (const own of proxies) own.vanish()
    await pair.crash()
    await pair.promote()
  }

  return {
    kinds: [...PROCESS_FAULTS, 'cut', 'lose', 'failover'],
    outages: ['failover'],
    leaseMs: 4_000,
    clockErrorMs: 0,
    frozenHoldsStore: false,
    losses: failover === 'async' ? 'last writes' : failover === 'two-primaries' ? 'one primary' : 'nothing',
    store: { name: 'postgres', url: urls[processes] ?? '', liveness: 'lease' },
    storeOf: (at) => ({ name: 'postgres', url: urls[at] ?? '', liveness: 'lease' }),
    ...clockSkews(processes, random),
    inject(fault, wait) {
      if (fault.kind !== 'failover') return injectConnectionFault(proxies[fault.process], fault, wait)
      last = last.then(failOver)
      return last
    },
    async close() {
      await pair.stop()
      await Promise.all(proxies.map((own) => own.close()))
    },
  }
}

/** The primary and its standby. */
class Pair {
  /** Resolves when the primary has a standby. @type {Promise<void>} */
  isReady = Promise.resolve()
  /** @type {import('../servers/start-server.js').OwnServer | undefined} */
  #primary
  /** @type {import('../servers/start-server.js').OwnServer | undefined} */
  #standby
  /** Between the two. @type {Awaited<ReturnType<typeof proxy>> | undefined} */
  #line
  /** The old primary, while it goes on. @type {import('../servers/start-server.js').OwnServer | undefined} */
  #old
  #connections = 0
  #isSynchronous

  /** @param {boolean} isSynchronous */
  constructor(isSynchronous) {
    this.#isSynchronous = isSynchronous
  }

  /** Where the address leads now. */
  get port() {
    this.#connections += 1
    const server = this.#old !== undefined && this.#connections % 2 === 0 ? this.#old : this.#primary
    return portOf(server?.url ?? '')
  }

  async start() {
    this.#primary = await startOwnPostgres()
    await this.#addStandby()
  }

  /** What is written from now on is lost. */
  async loseStandby() {
    this.#line?.sever()
    await sleep(LAG_MS)
  }

  async crash() {
    await this.#primary?.crash()
  }

  /** The address leads to the standby from now on, and the old primary ends, at once or after a while. */
  async promote() {
    const old = this.#primary
    await tell(this.#standby, 'select pg_promote()')
    if (old !== undefined && (await isUp(old))) this.#old = old
    this.#primary = this.#standby
    this.#standby = undefined
    this.isReady = this.#settle(old)
    // Whoever waits for it gets the error.
    this.isReady.catch(() => {})
  }

  async stop() {
    await this.isReady.catch(() => {})
    await this.#standby?.stop()
    await this.#primary?.stop()
    await this.#line?.close()
  }

  /** @param {import('../servers/start-server.js').OwnServer | undefined} old */
  async #settle(old) {
    if (this.#old !== undefined) await sleep(TWO_PRIMARIES_MS)
    this.#old = undefined
    await old?.stop()
    await this.#line?.close()
    await this.#addStandby()
  }

  async #addStandby() {
    const primary = this.#primary
    if (primary === undefined) return
    this.#line = await proxy(portOf(primary.url), () => 0)
    this.#standby = await startStandby(primary.url.replace(/:\d+\//, `:${this.#line.port}/`), STANDBY)
    if (!this.#isSynchronous) return
    await tell(primary, `alter system set synchronous_standby_names = '${STANDBY}'`)
    await tell(primary, 'select pg_reload_conf()')
  }
}

/** @param {import('../servers/start-server.js').OwnServer} server */
function isUp(server) {
  return tell(server, 'select 1').then(
    () => true,
    () => false,
  )
}

/** @param {import('../servers/start-server.js').OwnServer | undefined} server @param {string} sql */
async function tell(server, sql) {
  const client = new pg.Client({ connectionString: server?.url ?? '', connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end().catch(() => {})
  }
}
