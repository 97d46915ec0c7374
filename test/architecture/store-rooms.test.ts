/**
 * The folders of the stores ("rooms"). An idea that several stores share has the same file name in each of them, so
 * that a reader of one store finds everything in the others. The lists below name every module of a store, so a new
 * file fails this test until it is listed.
 */
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const STORES = fileURLToPath(new URL('../../src/stores/', import.meta.url))
const KINDS = ['memory', 'sqlite', 'postgres', 'redis'] as const
type Kind = (typeof KINDS)[number]

const AT_THE_ROOT = ['index.ts', 'store.ts', 'options.ts', 'diagnose.ts']
const ROOMS = [
  ...['connection', 'schema', 'schedules', 'runs', 'locks', 'instances', 'records'],
  /** Only in stores with transactions. */
  'transactions',
  /** Only in Redis. */
  'cluster',
]

/** Modules of every store. */
const IN_ALL = [
  'index.ts',
  'store.ts',
  ...inRoom('instances', 'beat', 'declarations', 'join', 'leave', 'list'),
  ...inRoom('locks', 'acquire', 'lease-codec', 'list', 'release', 'renew', 'reset'),
  ...inRoom('records', 'records'),
  ...inRoom('runs', 'available', 'backlog', 'cancel', 'claim', 'enqueue', 'freeze', 'list', 'prune', 'rescue', 'retry'),
  ...inRoom('runs', 'count', 'run-codec', 'settle', 'stamp'),
  ...inRoom('schedules', 'advance', 'apply', 'count', 'list', 'pause', 'remove', 'skips'),
]

/** Modules of two or three stores. */
const IN_SOME = [
  'diagnose.ts',
  'options.ts',
  ...inRoom('connection', 'beat-store', 'driver', 'errors', 'reopen', 'wakes'),
  ...inRoom('instances', 'instance-codec'),
  ...inRoom('locks', 'pass-on'),
  ...inRoom('runs', 'dedupe', 'transitions'),
  ...inRoom('schedules', 'change', 'put', 'schedule-codec', 'take-back'),
  ...inRoom('schema', 'migrate'),
  ...inRoom('transactions', 'enqueue-inside', 'transact'),
]

/** Modules of one store, and why the others need none. */
const IN_ONE: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  memory: {
    'schema/heap.ts': 'queues in memory; the other stores have indexes or sorted sets',
    'schema/run-log.ts': 'an index that other stores leave to the database',
    'schema/sorted-texts.ts': 'an index that other stores leave to the database',
    'schema/state.ts': 'the records and indexes themselves; the other stores keep them in tables or keys',
  },
  sqlite: {
    'connection/check-path.ts': 'only SQLite opens a path, and its drivers explain a wrong one badly',
    'connection/connection.ts': 'a synchronous connection that keeps its prepared statements',
    'connection/file-identity.ts': 'a file can be deleted or replaced while a process writes to it',
    'connection/file.ts': 'processes share the file without a server: a busy file is tried again by a timer',
    'connection/network-file-system.ts': 'file locks do not work between hosts on a network file system',
    'connection/open-file.ts': 'opens and closes the file, which several `open` calls may share',
    'connection/other-writers.ts':
      'SQLite has no notifications: it is asked again and again whether others have committed',
    'connection/statements.ts': 'SQLite has no stored functions: statements are typed one by one',
    'connection/tx.ts': 'an operation in TypeScript collects what it frees and what it wakes until the commit',
    'connection/write-queue.ts': 'SQLite has one writer at a time: operations of a turn share its transaction',
    'schema/counters.ts': 'SQLite has no sequences',
    'schema/migrate-file.ts': '`belfry migrate` opens the file without using the store',
  },
  postgres: {
    'connection/database.ts': 'statements and transactions over a pool, with time limits and repetition',
    'connection/direct-connection.ts': 'LISTEN and session locks do not work through a pooler',
    'connection/listener.ts': 'hints arrive by LISTEN, over the direct connection',
    'connection/pool-clients.ts': 'a pool may hold half-open connections, and the app may share the pool',
    'connection/pool.ts': "the pool is the user's, or opened for a URL",
    'connection/prepared-statements.ts': 'statements have names per session, which poolers break',
    'connection/proof-of-life.ts': 'the advisory mode: a session lock proves that its process lives',
    'connection/server-identity.ts': 'after a failover, an old primary may take writes again',
    'connection/session.ts': 'version, encoding and settings of each session, which poolers and servers choose',
    'schedules/definitions.ts': 'definitions are rows of their own, and known by their numbers',
    'schema/functions.ts': 'the list of functions that the database holds',
    'schema/migration-sql.ts': 'versions of tables, and functions known by a hash',
    'schema/schema-name.ts': 'the tables live in a schema that the user names',
    'schema/sql-function.ts': 'functions of the database as typed values',
    'transactions/adapters/caller-transaction.ts': '`enqueue` joins a transaction of the app',
    'transactions/adapters/drizzle.ts': 'a transaction of Drizzle',
    'transactions/adapters/knex.ts': 'a transaction of Knex',
    'transactions/adapters/kysely.ts': 'a transaction of Kysely',
    'transactions/adapters/prisma.ts': 'a transaction of Prisma',
    'transactions/commit-outcome.ts': 'the reply to a commit can be lost on the network',
    'transactions/half-open-watch.ts': "a handler's statement has no time limit, so the server is asked about it",
    'transactions/handler-client.ts': "a handler gets the pool's client, guarded",
    'transactions/single-client-pool.ts': 'some libraries take a pool and not a client',
    'transactions/transaction-backend.ts': 'the server process of a transaction, observed over another connection',
    'transactions/transaction-connection.ts': "a handler's transaction holds a connection of the pool",
    'transactions/transaction-slots.ts': 'handlers must not take all connections of the pool',
    'transactions/transaction-statements.ts': 'a handler may not begin or end a transaction itself',
  },
  redis: {
    'runs/skipped-run.ts': 'the home shard of a run knows what a ticket that was skipped does not',
    'cluster/cluster-link.ts': 'a cluster client has to find the masters again after a failover',
    'cluster/pages.ts': 'the page of a list is put together from the pages of the shards',
    'cluster/peek.ts': 'a step over several shards takes what is first in all of them',
    'cluster/shards.ts': 'a script reaches only the keys of one hash slot',
    'cluster/slots.ts': 'the hash slots of Redis Cluster',
    'cluster/tickets/deliver.ts': 'carries tickets from shard to shard',
    'cluster/tickets/held-tickets.ts': 'the attempts whose key is in another shard',
    'cluster/tickets/tickets.ts':
      'Redis Cluster has no transactions over several slots: a ticket joins a run and its key',
    'connection/check-server.ts': 'servers that may drop keys or are too old are refused',
    'connection/client-errors.ts': 'clients emit connection errors as events, which would end the process',
    'connection/duplicates.ts': 'a connection that went silent is replaced by a duplicate of its client',
    'connection/ioredis-link.ts': 'a client of ioredis',
    'connection/load-client.ts': 'the client package that is installed is loaded for a URL',
    'connection/lua-script.ts': 'operations are Lua scripts, sent by digest',
    'connection/node-redis-link.ts': 'a client of @redis/client',
    'connection/open-link.ts': 'clients try to connect for ever, so opening has a time limit',
    'connection/server.ts': 'sends scripts, and fails those that get no answer in time',
    'connection/subscription-watch.ts': 'a subscription does not notice that it is half-open',
    'records/record-codec.ts': 'a record is a text of two lines: times, then body',
    'schema/keys.ts': 'the list of keys, which scripts name by `key(…)`',
    'schema/show.ts': '`belfry redis show` explains a key in words',
  },
}

const MOST_MODULES = 18
/** Folders that may exceed this limit, each with its reason. */
const CROWDED: Readonly<Record<string, string>> = {}

function inRoom(room: string, ...names: readonly string[]): string[] {
  return names.map((name) => `${room}/${name}.ts`)
}

function filesOf(kind: Kind): readonly string[] {
  return readdirSync(STORES + kind, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.(?:ts|sql|lua)$/.test(file) && !file.endsWith('.test.ts'))
    .sort()
}

const files = new Map(KINDS.map((kind) => [kind, filesOf(kind)]))
const modules = new Map(KINDS.map((kind) => [kind, filesOf(kind).filter((file) => file.endsWith('.ts'))]))

it('the root of a store holds only its factory, operations, options and diagnosis', () => {
  for (const kind of KINDS) {
    const atTheRoot = modules.get(kind)?.filter((file) => !file.includes('/')) ?? []
    expect(AT_THE_ROOT, kind).toEqual(expect.arrayContaining(atTheRoot))
  }
})

it('every other file is in one of the shared rooms', () => {
  const others = KINDS.flatMap((kind) =>
    (files.get(kind) ?? [])
      .filter((file) => file.includes('/') && !ROOMS.includes(file.split('/')[0] ?? ''))
      .map((file) => `${kind}/${file}`),
  )
  expect(others).toEqual([])
})

function storesWith(file: string): readonly Kind[] {
  return KINDS.filter((kind) => modules.get(kind)?.includes(file))
}

const known = [...new Set([...modules.values()].flat())].sort()

it('the modules that all stores have are listed', () => {
  expect(known.filter((file) => storesWith(file).length === KINDS.length)).toEqual([...IN_ALL].sort())
})

it('the modules that two or three stores have are listed', () => {
  const inSome = known.filter((file) => storesWith(file).length > 1 && storesWith(file).length < KINDS.length)
  expect(inSome).toEqual([...IN_SOME].sort())
})

it('a module that only one store has is listed with its reason', () => {
  for (const kind of KINDS) {
    const alone = modules.get(kind)?.filter((file) => storesWith(file).length === 1)
    expect(alone, kind).toEqual(Object.keys(IN_ONE[kind]).sort())
  }
})

it('a folder holds at most 18 modules, unless it is listed with its reason', () => {
  const counts = new Map<string, number>()
  for (const kind of KINDS) {
    for (const file of modules.get(kind) ?? []) {
      const folder = dirname(`${kind}/${file}`)
      counts.set(folder, (counts.get(folder) ?? 0) + 1)
    }
  }
  const crowded = [...counts].filter(([, count]) => count > MOST_MODULES).map(([folder]) => folder)
  expect(crowded.sort()).toEqual(Object.keys(CROWDED).sort())
})
