// @ts-check
/**
 * Opens a store from settings that a process receives as data, and writes effects inside a handler's transaction. The
 * table of effects has no unique constraint, because the chaos run itself must show that no effect is there twice.
 */
import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import pg from 'pg'
import { postgres } from '../../dist/stores/postgres/index.js'
import { redis } from '../../dist/stores/redis/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

/**
 * @typedef {'lease' | 'advisory'} Liveness
 * @typedef {{ name: 'sqlite', path: string }} SqliteKind
 * @typedef {{ name: 'postgres', url: string, liveness: Liveness }} PostgresKind
 * @typedef {{ name: 'redis', url: string, client: '@redis/client' | 'ioredis' }} RedisKind
 * @typedef {{ name: 'redis-cluster', nodes: string[], waitReplicas: number }} ClusterKind
 * @typedef {SqliteKind | PostgresKind | RedisKind | ClusterKind} StoreKind
 *
 * @typedef {object} Effect
 * @property {string} run
 * @property {string} key
 * @property {number} token
 */

/** @param {StoreKind} kind */
export async function openStore(kind) {
  switch (kind.name) {
    case 'sqlite':
      return sqlite({ path: kind.path })
    case 'postgres':
      return postgres({ url: kind.url, liveness: kind.liveness, migrate: true })
    case 'redis':
      return kind.client === 'ioredis' ? redis({ client: ioredis(kind.url) }) : redis({ url: kind.url })
    case 'redis-cluster':
      return redis({ nodes: kind.nodes, waitReplicas: kind.waitReplicas })
  }
}

/** With its default options, ioredis queues commands while disconnected and resends unanswered ones. */
function ioredis(/** @type {string} */ url) {
  return /** @type {import('../../dist/stores/redis/index.js').IoRedis} */ (/** @type {unknown} */ (new Redis(url)))
}

const INSERT = 'insert into chaos_effects (run, key, token) values'

/**
 * Writes an effect inside `transaction()`.
 * @param {StoreKind} kind
 * @param {any} tx
 * @param {Effect} effect
 */
export function writeEffect(kind, tx, { run, key, token }) {
  if (kind.name === 'sqlite') return tx.prepare(`${INSERT} (?, ?, ?)`).run([run, key, token])
  return tx.query(`${INSERT} ($1, $2, $3)`, [run, key, token])
}

/** Only for stores with transactions. @param {StoreKind} kind */
export async function makeEffectsTable(kind) {
  if (kind.name === 'redis' || kind.name === 'redis-cluster') return
  const columns = 'run text not null, key text not null, token bigint not null'
  if (kind.name === 'sqlite') withFile(kind.path, (db) => db.exec(`create table chaos_effects (${columns})`))
  else await withClient(kind.url, (client) => client.query(`create table chaos_effects (seq serial, ${columns})`))
}

/**
 * The committed effects, in the order of writing.
 * @param {StoreKind} kind
 * @returns {Promise<Effect[] | undefined>}
 */
export async function readEffects(kind) {
  if (kind.name === 'redis' || kind.name === 'redis-cluster') return undefined
  const select = 'select run, key, token from chaos_effects order by'
  const rows =
    kind.name === 'sqlite'
      ? withFile(kind.path, (db) => db.prepare(`${select} rowid`).all())
      : (await withClient(kind.url, (client) => client.query(`${select} seq`))).rows
  return rows.map((/** @type {any} */ row) => ({ ...row, token: Number(row.token) }))
}

/**
 * @template Result
 * @param {string} path
 * @param {(db: any) => Result} work
 */
function withFile(path, work) {
  const Database = createRequire(import.meta.url)('libsql')
  const db = new Database(path, { timeout: 10_000 })
  try {
    return work(db)
  } finally {
    db.close()
  }
}

/**
 * @template Result
 * @param {string} url
 * @param {(client: pg.Client) => Promise<Result>} work
 */
async function withClient(url, work) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
