import { expect, it } from 'vitest'
import { Connection, configure } from '../../src/stores/sqlite/connection/connection.js'
import { openDriver } from '../../src/stores/sqlite/connection/driver.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { temporaryFile } from './temporary-file.js'

it('a connection that found the file busy sees what others write afterwards', async () => {
  const { path, remove } = temporaryFile()
  const [ours, theirs] = [new Connection(openDriver(path)), new Connection(openDriver(path))]
  for (const connection of [ours, theirs]) configure(connection)
  ours.exec('create table notes (text text)')
  theirs.begin()
  expect(() => ours.begin()).toThrow()
  const count = ours.driver.prepare('select count(*) as notes from notes')
  expect(count.get([])).toEqual({ notes: 0 })
  theirs.driver.prepare('insert into notes values (?)').run(['hello'])
  theirs.exec('commit')
  expect(count.get([])).toEqual({ notes: 1 })
  ours.close()
  theirs.close()
  await remove()
})

it('a waiter that asks again for a lock does not need a write transaction', async () => {
  const { path, remove } = temporaryFile()
  const store = sqlite({ path })
  await store.open()
  const request = { name: 'l', ttlMs: 60_000, permits: 1, floor: 0 }
  const waiter = { ...request, holder: 'b', waitMs: 60_000 }
  await store.leases.acquire({ ...request, holder: 'a' })
  const first = await store.leases.acquire(waiter)
  const theirs = new Connection(openDriver(path))
  configure(theirs)
  theirs.begin()
  // A write would wait for the other connection, which continues only after this call.
  expect(await store.leases.acquire(waiter)).toMatchObject({ ...first, now: expect.any(Number) })
  theirs.exec('commit')
  theirs.close()
  await store.close()
  await remove()
})
