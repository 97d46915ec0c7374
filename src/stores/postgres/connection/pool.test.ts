import pg from 'pg'
import { expect, it } from 'vitest'
import { poolOf } from './pool.js'

const URL = 'postgres://nobody@127.0.0.1:1/nowhere'

it('a connection that breaks while the store’s own pool ends does not end the process', async () => {
  const { used, leave } = poolOf({ url: URL })
  if (!(used instanceof pg.Pool)) throw new Error('this is not a pool of pg')
  await leave()
  expect(() => used.emit('error', new Error('terminating connection'))).not.toThrow()
})

it('the user’s pool keeps its own listeners only', async () => {
  const pool = new pg.Pool({ connectionString: URL })
  const { leave } = poolOf({ pool })
  const listeners = () => [pool.listenerCount('error'), pool.listenerCount('acquire')]
  expect(listeners()).toEqual([1, 1])
  await leave()
  expect(listeners()).toEqual([0, 0])
  await pool.end()
})

it('a connection that breaks while the pool hands it out does not end the process', async () => {
  const pool = new pg.Pool({ connectionString: URL })
  const { leave } = poolOf({ pool })
  const client = new pg.Client()
  for (let time = 0; time < 3; time += 1) pool.emit('acquire', client as pg.PoolClient)
  expect(() => client.emit('error', new Error('terminating connection'))).not.toThrow()
  expect(client.listenerCount('error')).toBe(1)
  await leave()
  await pool.end()
})
