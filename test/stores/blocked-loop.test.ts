/** Real processes whose event loop is blocked for much longer than their lease. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { describe, expect, it, type onTestFinished, vi } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import type { Store } from '../../src/core/store.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { serverUrl } from '../servers/server-url.js'
import { temporaryFile } from './temporary-file.js'

const PROGRAM = fileURLToPath(new URL('blocking-process.js', import.meta.url))
/** Longer than the lease, which is 6 s. */
const LONG_MS = 12_000
const AGAIN = { timeout: 90_000, retry: 1 }

/** The tests run concurrently, so each registers its cleanups through its own context. */
type OnFinish = typeof onTestFinished

interface Place {
  readonly store: Store
  /** The settings with which another process opens the same store. */
  readonly data: Readonly<Record<string, string>>
  close(): Promise<void>
}

let made = 0

async function onSqlite(): Promise<Place> {
  const { path, remove } = temporaryFile()
  return { store: sqlite({ path }), data: { path }, close: remove }
}

async function onPostgres(): Promise<Place> {
  made += 1
  const schema = `blocked_${process.pid}_${made}`
  const url = await serverUrl('postgres')
  await migratePostgres({ url, schema })
  const close = async () => {
    const pool = new pg.Pool({ connectionString: url })
    await pool.query(`drop schema ${schema} cascade`)
    await pool.end()
  }
  return { store: postgres({ url, schema }), data: { url, schema }, close }
}

async function onRedis(): Promise<Place> {
  made += 1
  const prefix = `blocked-${process.pid}-${made}:`
  const url = await serverUrl('redis')
  return { store: redis({ url, prefix }), data: { url, prefix }, close: async () => {} }
}

const KINDS = {
  sqlite: onSqlite,
  postgres: onPostgres,
  'postgres with a pool': onPostgres,
  'postgres, advisory': onPostgres,
  redis: onRedis,
  'redis with a client of node-redis': onRedis,
  'redis with a client of ioredis': onRedis,
} as const
const ONE_EACH = ['sqlite', 'postgres', 'redis'] as const

/** An instance that only observes, and functions that start processes on the same store. */
async function setup(kind: keyof typeof KINDS, onFinish: OnFinish) {
  const place = await KINDS[kind]()
  const belfry = createBelfry({ store: place.store, roles: [] })
  const cleanups = [place.close, () => belfry.stop()]
  onFinish(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup()
  })
  await belfry.start()
  const launch = (as: string, options: object) => launchProcess({ kind: as, ...place.data }, options, cleanups)
  /** Starts a process and waits for its beat thread, which takes longer than a lease when all cores are busy. */
  const start = async (options: object = {}) => {
    const started = launch(kind, options)
    await until(() => ['started', 'thread is ready'].every((words) => started.said().includes(words)))
    return started
  }
  return { belfry, start, launch }
}

interface Started {
  readonly child: ChildProcess
  readonly said: () => string
  readonly warned: () => string
}

function launchProcess(place: object, options: object, cleanups: (() => Promise<void>)[]): Started {
  const args = [PROGRAM, JSON.stringify(place), JSON.stringify(options)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  cleanups.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  const texts = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    texts.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    texts.err += text
  })
  return { child, said: () => texts.out, warned: () => texts.err }
}

/** Concurrent tests cannot use `expect.poll`. */
const until = (condition: () => boolean | Promise<boolean>) =>
  vi.waitUntil(condition, { timeout: 60_000, interval: 100 })

async function ended(belfry: Belfry, run: string) {
  const isEnded = async () => /succeeded|failed/.test((await belfry.runs.get(run))?.state ?? '')
  await until(isEnded)
  return belfry.runs.get(run)
}

const began = (...processes: readonly Started[]) =>
  processes
    .map(({ said }) => said())
    .join('')
    .split('began ').length - 1

describe.concurrent.each(Object.keys(KINDS) as (keyof typeof KINDS)[])('on %s', (kind) => {
  it(
    'a handler that blocks for longer than the lease runs once, and its lock is kept',
    AGAIN,
    async ({ onTestFinished }) => {
      const { belfry, start } = await setup(kind, onTestFinished)
      const blocked = await start()
      const { run } = await belfry.enqueue('hold and block', LONG_MS)
      await until(async () => (await belfry.locks.inspect('held')).length === 1)
      const other = await start()
      // A rival waits for the lock throughout, and would get it as soon as it expired.
      const waiting = belfry.lock('held', { wait: '60s' }).catch(() => undefined)
      const result = { lock: 'kept', pid: blocked.child.pid }
      expect(await ended(belfry, run)).toMatchObject({ state: 'succeeded', attempt: 1, result })
      expect(await waiting).toBeDefined()
      expect(blocked.warned() + other.warned()).toContain('the event loop was blocked')
      // Written during the block, with the name of the lock.
      expect(blocked.warned()).toMatch(/the event loop is blocked.*lock \\"held\\"/)
    },
  )
})

describe.concurrent.each(ONE_EACH)('on %s', (kind) => {
  it('ten blocking handlers are executed ten times, by more than one process', AGAIN, async ({ onTestFinished }) => {
    const { belfry, start } = await setup(kind, onTestFinished)
    const processes = [await start(), await start()]
    const runs = await Promise.all(Array.from({ length: 10 }, () => belfry.enqueue('block', 700)))
    const ends = await Promise.all(runs.map(({ run }) => ended(belfry, run)))
    expect(ends.map((run) => run?.state)).toEqual(Array(10).fill('succeeded'))
    expect(began(...processes)).toBe(10)
    expect(new Set(ends.map((run) => run?.result)).size).toBe(2)
  })

  it(
    'a process that blocks for longer than maxBlock reports the handler, and its run is taken over',
    AGAIN,
    async ({ onTestFinished }) => {
      const { belfry, start } = await setup(kind, onTestFinished)
      const processes = [await start({ maxBlock: '2s' }), await start({ maxBlock: '2s' })]
      const { run } = await belfry.enqueue('block', 60_000)
      await until(() => began(...processes) === 1)
      const blocked = processes.find((each) => began(each) === 1)
      await until(() => began(...processes) === 2)
      expect((await belfry.runs.get(run))?.attempt).toBe(2)
      expect(blocked?.warned()).toMatch(new RegExp(`longer than maxBlock.*"block ${run}"`))
    },
  )
})

it.concurrent('a pool whose password is a function is reported once as having no beat thread', async ({
  onTestFinished,
}) => {
  const { launch } = await setup('postgres', onTestFinished)
  const { warned, said, child } = launch('postgres with a password function', {})
  await until(() => said().includes('started'))
  await until(() => warned().includes('has options that only this thread can use (password)'))
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  await exit
  expect(warned().split('only this thread')).toHaveLength(2)
})
