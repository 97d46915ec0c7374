/** Servers and roles that Belfry cannot work with: each is refused, or reported, with words that say what to do. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { newRun } from '../../src/testing/contract/scene.js'
import { type OwnServer, startOwnPostgres, startStandby } from '../servers/postgres.js'
import { type LogLine, recorder } from './recorder.js'

const SLOW = { timeout: 60_000 }
let primary: OwnServer
let standby: OwnServer
let admin: pg.Pool

beforeAll(async () => {
  primary = await startOwnPostgres()
  admin = new pg.Pool({ connectionString: primary.url })
  await admin.query('create role app login; grant create on database postgres to app')
  await migratePostgres({ url: appUrl() })
  standby = await startStandby(primary.url, 'standby')
}, 120_000)

afterAll(async () => {
  await admin.end()
  await standby.stop()
  await primary.stop()
})

afterEach(() => admin.query('alter role app reset all'))

function appUrl(): string {
  return primary.url.replace('belfry@', 'app@')
}

function refusal(url: string): Promise<unknown> {
  const belfry = createBelfry({ store: postgres({ url }), logger: recorder([]) })
  return belfry
    .start()
    .catch((error: unknown) => error)
    .finally(() => belfry.stop())
}

describe('start() is refused', () => {
  it('on a standby, which could answer as long as nothing has to be written', async () => {
    expect(await refusal(standby.url)).toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: /is a standby, which takes no writes: connect to the primary, or wait until this one is promoted/,
    })
  })

  it('as a role that may only read, and the error does not speak of a failover', async () => {
    await admin.query('alter role app set default_transaction_read_only = on')
    expect(await refusal(appUrl())).toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: /lets this role only read: default_transaction_read_only is on/,
    })
  })

  it('when row-level security hides the tables, and the error names them', async () => {
    await admin.query(`alter table belfry.meta enable row level security; alter table belfry.runs enable row level security;
      alter table belfry.meta force row level security; alter table belfry.runs force row level security`)
    expect(await refusal(appUrl())).toMatchObject({
      code: 'STORE_INVALID',
      message: /row-level security hides all rows of the role "app" .*\(meta, runs\).* disable row level security/,
    })
    await admin.query('alter table belfry.meta disable row level security')
    expect(await refusal(appUrl())).toMatchObject({ message: /\(runs\)/ })
    await admin.query('alter table belfry.runs disable row level security')
  })
})

it('a policy of row-level security that refuses a row is named', async () => {
  await admin.query(`alter table belfry.runs enable row level security; alter table belfry.runs force row level security;
    create policy no_writes on belfry.runs using (true) with check (false)`)
  const store = postgres({ url: appUrl(), listen: false })
  await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({
    code: 'STORE_INVALID',
    message: /refuses a row by a policy of row-level security/,
  })
  await store.close()
  await admin.query('drop policy no_writes on belfry.runs; alter table belfry.runs disable row level security')
})

it('a transaction that the server ends for its age is not repeated as if the server were gone', async () => {
  const { rows } = await admin.query(`select current_setting('server_version_num')::integer >= 170000 as has_timeout`)
  if (!rows[0].has_timeout) {
    // Older servers do not know the setting.
    await expect(admin.query("set transaction_timeout = '1s'")).rejects.toMatchObject({ code: '42704' })
    return
  }
  await admin.query("alter role app set transaction_timeout = '300ms'")
  const blocker = await admin.connect()
  await blocker.query('begin; lock table belfry.runs in exclusive mode')
  const store = postgres({ url: appUrl(), listen: false })
  await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({
    message: /ended a transaction after its transaction_timeout: let this user have a longer one/,
  })
  await blocker.query('rollback')
  blocker.release()
  await store.close()
})

it('commits that wait for a synchronous standby are reported within one lease, with the reason', SLOW, async () => {
  const lines: LogLine[] = []
  const lease = 6_000
  const belfry = createBelfry({ store: postgres({ url: appUrl() }), lease, poll: 100, logger: recorder(lines) })
  let done = 0
  const job = belfry.job('work', {
    run: () => {
      done += 1
    },
  })
  belfry.schedule('every-second', { every: '1s', job })
  await belfry.start()
  await expect.poll(() => done, { timeout: 10_000 }).toBeGreaterThan(0)
  const setStandby = (name: string) =>
    admin
      .query(`alter system set synchronous_standby_names = '${name}'`)
      .then(() => admin.query('select pg_reload_conf()'))
  await setStandby('one_that_hangs')
  const hangsSince = performance.now()
  const warning = () => lines.find(({ level }) => level === 'warn')
  await expect.poll(warning, { timeout: 30_000 }).toBeDefined()
  expect(performance.now() - hangsSince).toBeLessThan(lease)
  await expect
    .poll(() => JSON.stringify(lines), { timeout: 30_000 })
    .toMatch(/its commits wait for a synchronous standby that does not answer/)
  await setStandby('')
  const before = done
  await expect.poll(() => done, { timeout: 30_000 }).toBeGreaterThan(before)
  await belfry.stop()
})
