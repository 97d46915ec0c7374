/** A primary with a standby behind an address that moves, and an old primary that comes back. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { type OutageProxy, outageProxy } from '../servers/outage-proxy.js'
import { type OwnServer, startOwnPostgres, startStandby } from '../servers/postgres.js'
import { type LogLine, recorder } from './recorder.js'

const PATIENT = { timeout: 30_000, interval: 20 }
const SLOW = { timeout: 90_000 }
const portOf = (url: string) => Number(new URL(url).port)

let old: OwnServer
let promoted: OwnServer
let stranger: OwnServer
let address: OutageProxy
let port = 0
let belfry: Belfry
let lines: LogLine[]
let done = 0

beforeAll(async () => {
  old = await startOwnPostgres()
  await migratePostgres({ url: old.url })
  promoted = await startStandby(old.url, 'standby')
  stranger = await startOwnPostgres()
  await migratePostgres({ url: stranger.url })
}, 120_000)

afterAll(() => Promise.all([old, promoted, stranger].map((server) => server.stop())))

async function promote(): Promise<void> {
  const client = new pg.Client({ connectionString: promoted.url })
  client.on('error', () => {})
  await client.connect()
  await client.query('select pg_promote()')
  await client.end()
}

beforeEach(async () => {
  port = portOf(old.url)
  address = await outageProxy(() => port)
  lines = []
  done = 0
  const url = `postgres://belfry@127.0.0.1:${address.port}/postgres`
  belfry = createBelfry({ store: postgres({ url }), lease: '30s', poll: '50ms', logger: recorder(lines) })
  const job = belfry.job('work', {
    run: () => {
      done += 1
    },
  })
  belfry.schedule('every-second', { every: '1s', job })
  await belfry.start()
})

afterEach(async () => {
  await belfry.stop({ grace: 0 })
  await address.cut()
})

/** Connections break, and new ones reach this server. */
async function moveTo(server: OwnServer): Promise<void> {
  await address.cut()
  port = portOf(server.url)
  await address.restore()
}

async function goesOn(): Promise<void> {
  const before = done
  await expect.poll(() => done, PATIENT).toBeGreaterThan(before + 1)
}

const warnings = (about: RegExp) => lines.filter(({ level, message }) => level === 'warn' && about.test(message))

describe('when the address leads to another server', () => {
  it(
    'a promoted standby is used, and its old primary is refused with one line until the address is right',
    SLOW,
    async () => {
      await goesOn()
      await promote()
      await moveTo(promoted)
      await goesOn()
      expect(warnings(/old primary|another server/)).toEqual([])
      await moveTo(old)
      const refused =
        /leads to an old primary: it is on timeline 1, and timeline 2 has been seen\. .* restart this process/
      await expect.poll(() => warnings(refused).length, PATIENT).toBe(1)
      await expect(belfry.now()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE', message: refused })
      await moveTo(promoted)
      await goesOn()
      expect(warnings(refused)).toHaveLength(1)
    },
  )

  it(
    'connections to the old primary that are still open are used no more once the new one has been seen',
    SLOW,
    async () => {
      await goesOn()
      port = portOf(promoted.url)
      const onOld = new pg.Client({ connectionString: old.url })
      await onOld.connect()
      const open = async () => {
        const { rows } = await onOld.query(
          "select from pg_stat_activity where datname = 'postgres' and pid <> pg_backend_pid() and query not like 'listen%'",
        )
        return rows.length
      }
      // Any new connection reaches the promoted server.
      await Promise.all(Array.from({ length: 12 }, () => belfry.now()))
      await goesOn()
      await expect.poll(open, PATIENT).toBeLessThanOrEqual(1)
      await onOld.end()
    },
  )

  it('another cluster is refused, and a new process may use it', SLOW, async () => {
    await goesOn()
    await moveTo(stranger)
    const refused = /leads to another server: its system identifier is \d+, and was \d+ before/
    await expect.poll(() => warnings(refused).length, PATIENT).toBe(1)
    const url = `postgres://belfry@127.0.0.1:${address.port}/postgres`
    const restarted = createBelfry({ store: postgres({ url }), logger: recorder([]) })
    await restarted.start()
    const [check] = await restarted.doctor()
    expect(JSON.stringify(check)).toMatch(/timeline 1, system \d+/)
    await restarted.stop()
  })
})
