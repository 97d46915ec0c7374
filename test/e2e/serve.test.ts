import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Connection } from '../../src/stores/sqlite/connection/connection.js'
import { openDriver } from '../../src/stores/sqlite/connection/driver.js'
import { type Nothing, row } from '../../src/stores/sqlite/connection/statements.js'
import { parseExposition } from '../server/exposition.js'
import { serverUrl } from '../servers/server-url.js'
import { belfry, curl, jsonBody, run, Service } from './service.js'

const SCHEMA = `serve_${process.pid}`
let folder = ''
let services: Service[] = []

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'belfry-serve-'))
})

afterEach(async () => {
  for (const service of services) service.kill('SIGKILL')
  await Promise.all(services.map((service) => service.exited()))
  services = []
})

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  const pool = new pg.Pool({ connectionString: await serverUrl('postgres'), max: 1 })
  await pool.query(`drop schema if exists ${SCHEMA} cascade`)
  await pool.end()
})

async function start(...args: string[]): Promise<Service> {
  const service = await Service.start(['--port', '0', ...args])
  services.push(service)
  return service
}

const STORES: Record<string, () => Promise<string[]>> = {
  SQLite: async () => ['--store', join(folder, 'belfry.db')],
  Postgres: async () => ['--store', await serverUrl('postgres'), '--schema', SCHEMA, '--migrate'],
  Redis: async () => ['--store', await serverUrl('redis'), '--schema', SCHEMA],
}

async function json(url: string, ...args: string[]) {
  const { status, text } = await curl(url, ...args)
  expect(`${status} ${text}`).toMatch(/^2/)
  return JSON.parse(text)
}

it('a process whose port is taken ends without taking part', { timeout: 60_000 }, async () => {
  const path = join(folder, 'taken.db')
  expect(await belfry(['migrate', '--store', path])).toMatchObject({ code: 0 })
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const service = new Service(['--store', path, '--port', String(port)])
  services.push(service)
  expect(await service.exited()).not.toBe(0)
  expect(service.output).toContain(String(port))
  const db = new Connection(openDriver(path))
  const joined = row<Nothing, { seq: number }>(
    "-- statement: joined\nselect seq from sqlite_sequence where name = 'belfry_instances';",
    'joined',
  )
  expect(joined({ db }, {})).toBeUndefined()
  db.close()
  taken.close()
})

describe.each(Object.entries(STORES))('two processes of belfry serve on one store: %s', (_, store) => {
  it('share schedules, ticks and locks, survive a kill, and stop gracefully', { timeout: 120_000 }, async () => {
    const args = await store()
    const one = await start(...args)
    const other = await start(...args)
    const made = await curl(`${one.url}/v1/schedules/clock`, ...jsonBody('PUT', { cron: '* * * * * *', job: 'tock' }))
    expect(made.status).toBe(201)
    expect(await json(`${other.url}/v1/schedules/clock`)).toMatchObject({ id: 'clock', cron: '* * * * * *' })

    const lock = jsonBody('PUT', { ttl: '30s' })
    const [first, second] = [
      await curl(`${one.url}/v1/locks/a`, ...lock),
      await curl(`${other.url}/v1/locks/a`, ...lock),
    ]
    expect([first.status, second.status]).toEqual([expect.toSatisfy((each) => each === 200 || each === 201), 409])

    one.kill('SIGKILL')
    expect(await one.exited()).toBe('SIGKILL')
    const ticks = async () => {
      const { data } = await json(`${other.url}/v1/runs?schedule=clock&limit=100`)
      return (data as { tick: string }[]).map(({ tick }) => tick)
    }
    await expect.poll(async () => (await ticks()).length, { timeout: 30_000, interval: 100 }).toBeGreaterThan(3)
    const seen = await ticks()
    expect(new Set(seen).size).toBe(seen.length)

    const metrics = await curl(`${other.url}/metrics`)
    const families = parseExposition(metrics.text)
    expect(families.get('belfry_store_up')?.samples[0]?.value).toBe(1)
    // The runs of the schedule wait, because no instance has their job.
    expect(families.get('belfry_waiting_runs')?.samples[0]?.value).toBeGreaterThan(0)
    expect((await curl(`${other.url}/v1/schedules/clock`, '-X', 'DELETE')).status).toBe(204)
    expect(await other.stop()).toBe(0)
    expect(other.output).toMatch(/SIGTERM: finishing requests in flight\n.*stopped\n$/)
  })
})

describe('SIGTERM under load', () => {
  it.each(Object.entries(STORES))(
    'loses no answered request, and ends within the grace: %s',
    { timeout: 120_000 },
    async (_, store) => {
      const args = await store()
      const [one, other] = await Promise.all([start(...args, '--grace', '5s'), start(...args)])
      const entry = (at: number) =>
        [
          `url = "${one.url}/v1/schedules/load-${at}"`,
          'request = "PUT"',
          'header = "Content-Type: application/json"',
          'data = "{\\"every\\":\\"1h\\",\\"job\\":\\"x\\"}"',
          `write-out = "%{http_code} ${at}\\n"`,
          'silent',
          'output = "/dev/null"',
        ].join('\n')
      const config = Array.from({ length: 3_000 }, (_, at) => entry(at)).join('\nnext\n')
      const load = run(['-Z', '--parallel-max', '20', '-K', '-'], config)
      const count = async () => (await json(`${other.url}/v1/schedules?prefix=load-&limit=100`)).data.length
      await expect.poll(count, { timeout: 30_000, interval: 20 }).toBeGreaterThan(50)
      const askedAt = performance.now()
      expect(await one.stop()).toBe(0)
      expect(performance.now() - askedAt).toBeLessThan(5_000 + 2_000)
      const { stdout } = await load
      const answers = stdout
        .trim()
        .split('\n')
        .map((line) => line.split(' '))
      const made = answers.flatMap(([status, at]) => (status === '201' ? [`load-${at}`] : []))
      expect(made.length).toBeGreaterThan(50)
      expect(made.length).toBeLessThan(3_000)
      // Each request was answered or its connection was refused (curl then prints 000). No answer is a server error.
      expect(new Set(answers.map(([status]) => status))).toEqual(new Set(['201', '000']))
      const all = async (path: string, idOf: (item: Record<string, string>) => string | undefined) => {
        const there = new Set<string | undefined>()
        for (let cursor = ''; ; ) {
          const page = await json(`${other.url}${path}&limit=1000${cursor}`)
          for (const item of page.data) there.add(idOf(item))
          if (page.nextCursor === null) return there
          cursor = `&cursor=${page.nextCursor}`
        }
      }
      const there = await all('/v1/schedules?prefix=load-', ({ id }) => id)
      expect(made.filter((id) => !there.has(id))).toEqual([])
      const written = await all('/v1/audit?', ({ target }) => target)
      expect(made.filter((id) => !written.has(id))).toEqual([])
    },
  )

  it('ends event streams, and closes kept-alive connections after their next answer', async () => {
    const service = await start('--store', join(folder, 'streams.db'), '--grace', '30s')
    const heard = join(folder, 'events.txt')
    const stream = run(['-sSN', '--max-time', '60', '-o', heard, `${service.url}/v1/events`])
    await expect
      .poll(() => existsSync(heard) && readFileSync(heard, 'utf8'), { timeout: 20_000 })
      .toMatch(/^event: ready$/m)
    const agent = new Agent({ keepAlive: true })
    await new Promise((resolve) =>
      get(`${service.url}/healthz`, { agent }, (response) => response.resume().on('end', resolve)),
    )
    await curl(`${service.url}/v1/schedules/a`, ...jsonBody('PUT', { every: '1h', job: 'x' }))
    const askedAt = performance.now()
    expect(await service.stop()).toBe(0)
    expect(performance.now() - askedAt).toBeLessThan(10_000)
    expect((await stream).code).toBe(0)
    agent.destroy()
  })

  it('a second signal exits at once', async () => {
    const service = await start('--store', join(folder, 'second.db'), '--grace', '60s')
    // The first signal starts a graceful stop, which waits for this request, whose body never completes.
    const { hostname, port } = new URL(service.url)
    const stuck = connect(Number(port), hostname)
    stuck.on('error', () => {})
    stuck.write(
      'PUT /v1/schedules/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    )
    await once(stuck, 'connect')
    await expect.poll(async () => (await curl(`${service.url}/healthz`)).status).toBe(200)
    service.kill('SIGTERM')
    await expect.poll(() => service.output).toMatch(/SIGTERM/)
    service.kill('SIGTERM')
    expect(await service.exited()).toBe(143)
    stuck.destroy()
  })
})
