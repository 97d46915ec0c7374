import { describe, expect, it } from 'vitest'
import {
  betterSqlite,
  type Driver,
  type Load,
  nodeSqlite,
  openDriver,
  type Value,
} from '../../src/stores/sqlite/connection/driver.js'
import { isBusy } from '../../src/stores/sqlite/connection/errors.js'
import { temporaryFile } from './temporary-file.js'

/** A fake of `node:sqlite` for runtimes without it; its rows depend on the options. */
class FakeDatabase {
  readonly path: string
  readonly calls: unknown[] = []
  isTransaction = false

  constructor(path: string) {
    this.path = path
  }

  exec(sql: string): void {
    this.calls.push(sql)
  }

  close(): void {
    this.calls.push('close')
  }

  prepare(sql: string) {
    const row = { a: 1, b: 'two', c: null }
    return {
      run: (...values: Value[]) => {
        this.calls.push([sql, ...values])
        return { changes: 1n, lastInsertRowid: 7n }
      },
      get: (...values: Value[]) => (values[0] === 'none' ? undefined : row),
      all: () => [row, row],
    }
  }
}

function answers(driver: Driver) {
  const statement = driver.prepare('select')
  return [statement.run([1, 'x']), statement.get([]), statement.get(['none']), statement.all([])]
}

const EXPECTED = [
  1,
  { a: 1, b: 'two', c: null },
  undefined,
  [
    { a: 1, b: 'two', c: null },
    { a: 1, b: 'two', c: null },
  ],
]

describe('the driver over node:sqlite', () => {
  it('gives rows as objects and counts as numbers', () => {
    const database = new FakeDatabase('x')
    const driver = nodeSqlite(database)
    expect(answers(driver)).toEqual(EXPECTED)
    expect(database.calls).toEqual([['select', 1, 'x']])
    expect(driver.inTransaction).toBe(false)
    driver.exec('begin')
    driver.close()
    expect(database.calls.slice(1)).toEqual(['begin', 'close'])
  })
})

describe('the driver over better-sqlite3', () => {
  it('asks for arrays, and makes objects of them by the names of the columns', () => {
    const asked: boolean[] = []
    const statement = {
      run: () => ({ changes: 1, lastInsertRowid: 7 }),
      get: (values: readonly Value[]) => (values[0] === 'none' ? undefined : [1, 'two', null]),
      all: () => [
        [1, 'two', null],
        [1, 'two', null],
      ],
      raw: (on: boolean) => asked.push(on),
      columns: () => ['a', 'b', 'c'].map((name) => ({ name })),
    }
    expect(answers(betterSqlite({ prepare: () => statement, exec() {}, close() {} }))).toEqual(EXPECTED)
    expect(asked).toEqual([true])
  })
})

describe('the choice of a driver', () => {
  it('prefers the runtime’s own driver', () => {
    const from: Load = (module) => (module === 'node:sqlite' ? { DatabaseSync: FakeDatabase } : undefined)
    expect(openDriver('there.db', from).handle).toMatchObject({ path: 'there.db' })
  })

  it('names the package to install when there is none', () => {
    const from: Load = () => {
      throw new Error('not found')
    }
    expect(() => openDriver('there.db', from)).toThrow('npm install libsql')
  })

  it('works with this machine’s driver', async () => {
    const file = temporaryFile()
    const driver = openDriver(file.path)
    driver.exec('create table t (a integer primary key, b text)')
    expect(driver.prepare('insert into t (b) values (?)').run(['x'])).toBe(1)
    expect(driver.prepare('select a, b, null as c from t').all([])).toEqual([{ a: 1, b: 'x', c: null }])
    driver.close()
    await file.remove()
  })
})

it('recognises a busy file by the error codes of every driver', () => {
  expect(isBusy(Object.assign(new Error('locked'), { code: 'ERR_SQLITE_ERROR', errcode: 5 }))).toBe(true)
  expect(isBusy(Object.assign(new Error('locked'), { code: 'SQLITE_BUSY_SNAPSHOT' }))).toBe(true)
  expect(isBusy(Object.assign(new Error('locked'), { code: 'SQLITE_BUSY', rawCode: 5 }))).toBe(true)
  expect(isBusy(Object.assign(new Error('no'), { code: 'SQLITE_CONSTRAINT_UNIQUE', rawCode: 2067 }))).toBe(false)
  expect(isBusy(undefined)).toBe(false)
})
