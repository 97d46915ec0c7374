/** The supported Postgres libraries, each with a user table, behind the interface that the tests need. */
import { drizzle } from 'drizzle-orm/node-postgres'
import { pgTable, serial, text } from 'drizzle-orm/pg-core'
import createKnex, { type Knex } from 'knex'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import {
  type CallerTransaction,
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromPrisma,
} from '../../src/stores/postgres/index.js'
import { generatePrisma } from './prisma-client.js'
import type { Tx } from './transaction-scene.js'

export interface Library {
  /** Runs a transaction of the library, in the form that Belfry accepts, with a function that writes in it. */
  transaction(
    work: (tx: CallerTransaction, write: (what: string) => PromiseLike<unknown>) => Promise<void>,
  ): Promise<unknown>
  /** The library's client outside of a transaction. */
  readonly outside: CallerTransaction
  /** Writes with the library inside a handler's transaction. */
  writeInside(tx: Tx, what: string): PromiseLike<unknown>
  /** Writes in a nested transaction of the library inside a handler's. It rolls back when `end` rejects. */
  nestInside(tx: Tx, what: string, end: () => Promise<void>): PromiseLike<unknown>
  close(): Promise<unknown>
}

type Open = (url: string, table: string) => Promise<Library>

async function transactionOn(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await work(client)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

async function plainPg(url: string, table: string): Promise<Library> {
  const pool = new pg.Pool({ connectionString: url })
  const insert = `insert into ${table} (what) values ($1)`
  return {
    transaction: (work) => transactionOn(pool, (client) => work(client, (what) => client.query(insert, [what]))),
    outside: pool,
    writeInside: (tx, what) => tx.query(insert, [what]),
    nestInside: (tx, what, end) =>
      transactionOn(tx.pool, async (client) => {
        await client.query(insert, [what])
        await end()
      }),
    close: () => pool.end(),
  }
}

async function withDrizzle(url: string, name: string): Promise<Library> {
  const pool = new pg.Pool({ connectionString: url })
  const db = drizzle(pool)
  const table = pgTable(name, { id: serial().primaryKey(), what: text().notNull() })
  return {
    transaction: (work) => db.transaction((tx) => work(fromDrizzle(tx), (what) => tx.insert(table).values({ what }))),
    outside: fromDrizzle(db),
    writeInside: (tx, what) => drizzle(tx.pool).insert(table).values({ what }),
    nestInside: (tx, what, end) =>
      drizzle(tx.pool).transaction(async (nested) => {
        await nested.insert(table).values({ what })
        await end()
      }),
    close: () => pool.end(),
  }
}

async function withKysely(url: string, table: string): Promise<Library> {
  type Tables = Record<string, { what: string }>
  const open = (pool: pg.Pool) =>
    new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] })
  const db = open(new pg.Pool({ connectionString: url }))
  return {
    transaction: (work) =>
      db
        .transaction()
        .execute((trx) => work(fromKysely(trx), (what) => trx.insertInto(table).values({ what }).execute())),
    outside: fromKysely(db),
    writeInside: (tx, what) => open(tx.pool).insertInto(table).values({ what }).execute(),
    nestInside: (tx, what, end) =>
      open(tx.pool)
        .transaction()
        .execute(async (nested) => {
          await nested.insertInto(table).values({ what }).execute()
          await end()
        }),
    close: () => db.destroy(),
  }
}

async function withKnex(url: string, table: string): Promise<Library> {
  const knex = createKnex({ client: 'pg', connection: url })
  return {
    transaction: (work) => knex.transaction((trx) => work(fromKnex(trx), (what) => trx(table).insert({ what }))),
    outside: fromKnex(knex),
    writeInside: (tx, what) => knex(table).insert({ what }).connection(tx.client),
    nestInside: async (tx, what, end) => {
      const connection = await tx.pool.connect()
      const write = async (nested: Knex.Transaction) => {
        await nested(table).insert({ what })
        await end()
      }
      await knex.transaction(write, { connection }).finally(() => connection.release())
    },
    close: () => knex.destroy(),
  }
}

async function withPrisma(url: string, table: string): Promise<Library> {
  const open = await generatePrisma(table)
  const pool = new pg.Pool({ connectionString: url })
  const prisma = open(pool)
  return {
    transaction: (work) =>
      prisma.$transaction((tx) => work(fromPrisma(tx), (what) => tx.effect.create({ data: { what } }))),
    outside: fromPrisma(prisma),
    writeInside: (tx, what) => open(tx.pool).effect.create({ data: { what } }),
    nestInside: (tx, what, end) =>
      open(tx.pool).$transaction(async (nested) => {
        await nested.effect.create({ data: { what } })
        await end()
      }),
    close: async () => {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}

export const LIBRARIES: readonly (readonly [name: string, open: Open])[] = [
  ['pg', plainPg],
  ['Drizzle', withDrizzle],
  ['Kysely', withKysely],
  ['Knex', withKnex],
  ['Prisma', withPrisma],
]
