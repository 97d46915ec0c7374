import { expect, it } from 'vitest'
import { Connection, configure, openDriver } from '../../src/stores/sqlite/connection.js'
import { temporaryFile } from './temporary-file.js'

it('a connection that found the file busy sees what others write after that', async () => {
  const { path, remove } = temporaryFile()
  const [ours, theirs] = [new Connection(openDriver(path)), new Connection(openDriver(path))]
  for (const connection of [ours, theirs]) configure(connection)
  ours.exec('create table notes (text text)')
  theirs.begin()
  expect(() => ours.begin()).toThrow()
  expect(ours.get('select count(*) from notes')).toEqual([0])
  theirs.run('insert into notes values (?)', 'hello')
  theirs.run('commit')
  expect(ours.get('select count(*) from notes')).toEqual([1])
  ours.close()
  theirs.close()
  await remove()
})
