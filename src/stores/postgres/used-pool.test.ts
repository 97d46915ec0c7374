import pg from 'pg'
import { expect, it } from 'vitest'
import { poolOf } from './used-pool.js'

const URL = 'postgres://nobody@127.0.0.1:1/nowhere'

it('a pool that was made here is heard to the last: a connection that breaks while it ends does not end the process', async () => {
  const { used, leave } = poolOf({ url: URL })
  if (!(used instanceof pg.Pool)) throw new Error('this is not a pool of pg')
  await leave()
  expect(() => used.emit('error', new Error('terminating connection'))).not.toThrow()
})

it('a pool that was given is left as it was found', async () => {
  const pool = new pg.Pool({ connectionString: URL })
  const { leave } = poolOf({ pool })
  expect(pool.listenerCount('error')).toBe(1)
  await leave()
  expect(pool.listenerCount('error')).toBe(0)
  await pool.end()
})
