import pg from 'pg'
import { serverUrl } from '../servers/server-url.js'

let made = 0

/** A user table in the store's database. */
export async function effectsTable() {
  made += 1
  const name = `effects_${process.pid}_${made}`
  const pool = new pg.Pool({ connectionString: await serverUrl('postgres'), max: 3 })
  await pool.query(`create table ${name} (id serial primary key, what text not null unique)`)
  return {
    name,
    pool,
    /** The committed rows, in order. */
    async effects(): Promise<string[]> {
      const { rows } = await pool.query<{ what: string }>(`select what from ${name} order by id`)
      return rows.map(({ what }) => what)
    },
    async drop(): Promise<void> {
      await pool.query(`drop table ${name}`)
      await pool.end()
    },
  }
}
