import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Connection } from '../../src/stores/sqlite/connection/connection.js'
import { openDriver } from '../../src/stores/sqlite/connection/driver.js'
import { declaredStatements, statementTexts, withConditions } from '../../src/stores/sqlite/connection/statements.js'
// Importing the store declares all its statements.
import '../../src/stores/sqlite/index.js'
import { migrate } from '../../src/stores/sqlite/schema/migrate.js'

const FOLDER = fileURLToPath(new URL('../../src/stores/sqlite/', import.meta.url))
const DEFINITIONS = ['tables.sql', 'indexes.sql', 'views.sql']

const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.sql') && !DEFINITIONS.includes(basename(file)))
  .map((file) => ({ file, texts: statementTexts(readFileSync(join(FOLDER, file), 'utf8')) }))

let db: Connection

beforeAll(() => {
  db = new Connection(openDriver(':memory:'))
  migrate(db, 'the test')
})

afterAll(() => db.close())

describe('the statements of the SQLite store', () => {
  it('are declared, each one once', () => {
    const written = files.flatMap(({ texts }) => [...texts.keys()])
    expect(written.length).toBeGreaterThan(50)
    expect(declaredStatements.map(({ name }) => name).sort()).toEqual(written.sort())
  })

  it.each(declaredStatements)('$name compiles against a fresh schema', ({ sql }) => {
    expect(() => db.driver.prepare(sql)).not.toThrow()
  })

  it('take the conditions of a list where it says so', () => {
    const list = { name: 'list', sql: 'select 1 where ? > 0/* and conditions */ limit ?', parameters: ['a', 'limit'] }
    expect(withConditions(list, ['b = :b', 'c is null'])).toEqual({
      name: 'list',
      sql: 'select 1 where ? > 0 and b = ? and c is null limit ?',
      parameters: ['a', 'b', 'limit'],
    })
  })
})

describe('the views of the SQLite store', () => {
  it.each(['belfry_run', 'belfry_schedule', 'belfry_lock', 'belfry_instance'])('%s can be read', (view) => {
    expect(db.driver.prepare(`select * from ${view}`).all([])).toEqual([])
  })
})
