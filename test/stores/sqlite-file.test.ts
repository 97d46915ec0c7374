import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { checkPath } from '../../src/stores/sqlite/connection/check-path.js'
import { Connection } from '../../src/stores/sqlite/connection/connection.js'
import { openDriver } from '../../src/stores/sqlite/connection/driver.js'
import { networkKind } from '../../src/stores/sqlite/connection/network-file-system.js'
import { migrateSqlite, type SqliteHandle, sqlite } from '../../src/stores/sqlite/index.js'
import { migrate, SCHEMA_VERSION, schemaVersion } from '../../src/stores/sqlite/schema/migrate.js'
import { newRun } from '../../src/testing/contract/scene.js'
import { temporaryFile } from './temporary-file.js'

let file: ReturnType<typeof temporaryFile>
const stores: Store[] = []

beforeEach(() => {
  file = temporaryFile()
})

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  await file.remove()
})

function open(options: { path?: string; busyMs?: number } = {}): Store {
  const store = sqlite({ path: file.path, ...options })
  stores.push(store)
  return store
}

function openOn(database: SqliteHandle): Store {
  const store = sqlite({ database })
  stores.push(store)
  return store
}

function rawHandle(): SqliteHandle {
  return openDriver(file.path).handle as SqliteHandle
}

describe('an unusable SQLite file is refused with the reason and a remedy', () => {
  it('in a missing folder', async () => {
    await expect(open({ path: `${file.path}/no/such.db` }).open()).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringContaining('create it first'),
    })
  })

  it('that is a folder', async () => {
    mkdirSync(file.path)
    await expect(open().open()).rejects.toMatchObject({ code: 'STORE_INVALID' })
  })

  it('in a read-only folder', async () => {
    await expect(open({ path: '/proc/belfry.db' }).open()).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringContaining('cannot be opened'),
      cause: expect.anything(),
    })
  })

  it('that is not a database', async () => {
    writeFileSync(file.path, 'once upon a time '.repeat(500))
    await expect(open().open()).rejects.toMatchObject({
      code: 'STORE_INVALID',
      message: expect.stringContaining('no SQLite database'),
      cause: expect.anything(),
    })
  })

  it('that a newer version of Belfry has written', async () => {
    await open().open()
    const db = rawHandle()
    db.exec(`update belfry_meta set value = ${SCHEMA_VERSION + 1}`)
    db.close()
    await expect(open().open()).rejects.toMatchObject({
      code: 'STORE_INVALID',
      message: expect.stringContaining('newer Belfry'),
    })
  })

  for (const table of ['belfry_meta', 'belfry_runs', 'belfry_names']) {
    it(`that has a table ${table} of another application`, async () => {
      const db = rawHandle()
      db.exec(`create table ${table} (mine)`)
      db.close()
      const refusal = {
        code: 'STORE_INVALID',
        message: expect.stringContaining(`has a "${table}" that Belfry did not make: give Belfry a file of its own`),
      }
      await expect(open().open()).rejects.toMatchObject(refusal)
      await expect(migrateSqlite({ path: file.path })).rejects.toMatchObject(refusal)
      await expect(migrateSqlite({ path: file.path, dryRun: true })).rejects.toMatchObject(refusal)
    })
  }

  it('that is read-only', async () => {
    const db = rawHandle()
    const store = openOn(db)
    await store.open()
    db.exec('pragma query_only = on')
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
    db.exec('pragma query_only = off')
    await expect(store.runs.enqueue([newRun()])).resolves.toHaveLength(1)
    db.close()
  })

  it('on a full disk; after space is freed everything continues', async () => {
    const db = rawHandle()
    const store = openOn(db)
    await store.open()
    db.exec('pragma max_page_count = 100')
    const large = () => store.runs.enqueue([newRun({ payload: 'x'.repeat(200_000) })])
    await expect(Promise.all(Array.from({ length: 10 }, large))).rejects.toMatchObject({ code: 'STORE_FULL' })
    db.exec('pragma max_page_count = 100000')
    await expect(large()).resolves.toMatchObject([{ outcome: 'enqueued' }])
    db.close()
  })

  it('on a network file system', () => {
    const kindOf = (type: number) => networkKind('/anywhere', { typeOf: () => type, mounts: () => [] })
    expect(kindOf(0x6969)).toBe('NFS')
    expect(kindOf(0xff534d42 | 0)).toBe('CIFS')
    expect(kindOf(0x01021997)).toBe('9p')
    expect(kindOf(0xef53)).toBeUndefined()
  })

  it('on a network file system behind FUSE, detected by the list of mounts', () => {
    const mounts = () => [
      '21 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw',
      '80 21 0:50 / /mnt rw - fuse.fuse-overlayfs overlay rw',
      '81 80 0:51 / /mnt/far\\040away rw,nosuid shared:2 master:3 - fuse.sshfs host:/data rw',
      '',
    ]
    const kindOf = (folder: string) => networkKind(folder, { typeOf: () => 0x65735546, mounts })
    expect(kindOf('/mnt/far away')).toBe('sshfs')
    expect(kindOf('/mnt/far away/db')).toBe('sshfs')
    expect(kindOf('/mnt/far awayish')).toBeUndefined()
    expect(kindOf('/mnt')).toBeUndefined()
    expect(networkKind('/anywhere', { typeOf: () => 0x65735546, mounts: () => [] })).toBeUndefined()
  })

  it('behind a symlink, as if it had been named directly', async () => {
    const folder = dirname(file.path)
    mkdirSync(join(folder, 'real'))
    symlinkSync(join(folder, 'real', 'there.db'), file.path)
    await open().open()
    expect(existsSync(join(folder, 'real', 'there.db'))).toBe(true)
    symlinkSync(join(folder, 'nowhere', 'gone.db'), join(folder, 'dangling.db'))
    await expect(open({ path: join(folder, 'dangling.db') }).open()).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringContaining('nowhere'),
    })
    symlinkSync('loop.db', join(folder, 'loop.db'))
    await expect(open({ path: join(folder, 'loop.db') }).open()).rejects.toMatchObject({ code: 'STORE_INVALID' })
  })

  it('on a file system that is mounted read-only or not writable for this user', () => {
    expect(() => checkPath(file.path, () => 'EROFS')).toThrow(
      expect.objectContaining({ code: 'STORE_READ_ONLY', message: expect.stringContaining('mounted read-only') }),
    )
    expect(() => checkPath(file.path, () => 'EACCES')).toThrow(
      expect.objectContaining({ code: 'STORE_READ_ONLY', message: expect.stringContaining('give it write access') }),
    )
  })
})

describe('the mode of a SQLite file', () => {
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
  const modes = () => [file.path, `${file.path}-wal`, `${file.path}-shm`].map(modeOf)

  it.each([0o000, 0o022, 0o777])('is 600 for a new file, its log and its index, under umask %i', async (umask) => {
    const before = process.umask(umask)
    try {
      await open().open()
    } finally {
      process.umask(before)
    }
    expect(modes()).toEqual(['600', '600', '600'])
  })

  it('is 600 for a new file behind a symlink', async () => {
    const target = join(dirname(file.path), 'target.db')
    symlinkSync(target, file.path)
    await open().open()
    expect(modeOf(target)).toBe('600')
  })

  it('stays as it is for a file that exists', async () => {
    writeFileSync(file.path, '')
    chmodSync(file.path, 0o640)
    await open().open()
    expect(modes()).toEqual(['640', '640', '640'])
  })

  it('is 600 for a file that `belfry migrate` creates', async () => {
    await migrateSqlite({ path: file.path })
    expect(modeOf(file.path)).toBe('600')
  })
})

describe('sqlite() refuses', () => {
  it.each<[what: string, options: unknown, message: RegExp]>([
    ['a path alone', 'belfry.db', /give an object, as in sqlite\(\{ path: "belfry.db" \}\)/],
    ['nothing', undefined, /options must be an object, not "undefined"/],
    ['neither path nor database', {}, /give the path of a file, or a database/],
    ['both', { path: 'a.db', database: {} }, /not both/],
    ['a store in memory', { path: ':memory:' }, /path is ":memory:"; for a store in memory use memory\(\)/],
    ['an empty path', { path: '' }, /path is ""; it must name a file/],
    ['a path that is a number', { path: 7 }, /path is "7"; it must be text/],
    ['a URL', { path: 'file:belfry.db' }, /path is "file:belfry.db"; it must be the path of a local file, not a URL/],
    ['a zero character', { path: 'a\0b' }, /zero character/],
    ['a database that is none', { database: {} }, /database must be a handle of better-sqlite3, libsql or node:sqlite/],
    ['a patience that is none', { path: 'a.db', busyMs: '5s' }, /busyMs is "5s"; it must be a number of milliseconds/],
    ['a clock that is none', { path: 'a.db', clock: {} }, /clock must have now\(\), monotonic\(\) and after\(\)/],
    ['an option that does not exist', { paht: 'a.db' }, /"paht" is not an option; did you mean "path"\?/],
  ])('%s', (_, options, message) => {
    expect(() => sqlite(options as never)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringMatching(message) }),
    )
  })
})

describe('a SQLite file to which others write', () => {
  it('is waited for without blocking the event loop', async () => {
    const store = open()
    await store.open()
    const other = rawHandle()
    other.exec('begin immediate')
    let turns = 0
    const turning = setInterval(() => {
      turns += 1
    }, 1)
    const enqueued = store.runs.enqueue([newRun()])
    // A writer does not delay readers.
    expect((await store.runs.list({ limit: 1 })).items).toEqual([])
    while (turns < 20) await new Promise((resolve) => setTimeout(resolve, 5))
    other.exec('commit')
    expect(await enqueued).toMatchObject([{ outcome: 'enqueued' }])
    clearInterval(turning)
    other.close()
  })

  it('is reported as busy after a while, and works again when it is free', async () => {
    const store = open({ busyMs: 50 })
    await store.open()
    const other = rawHandle()
    other.exec('begin immediate')
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    other.exec('rollback')
    await expect(store.runs.enqueue([newRun()])).resolves.toHaveLength(1)
    other.close()
  })

  it('is migrated once, by the first of ten processes', { timeout: 60_000 }, async () => {
    const child = fileURLToPath(new URL('./open-and-enqueue.js', import.meta.url))
    const run = promisify(execFile)
    await Promise.all(Array.from({ length: 10 }, () => run(process.execPath, [child, file.path])))
    expect((await open().runs.list({ limit: 100 })).items).toHaveLength(10)
  })

  it('is not taken for another application’s while another process migrates it', () => {
    class RacedConnection extends Connection {
      override prepare(sql: string) {
        const statement = super.prepare(sql)
        const get: typeof statement.get = (values) => {
          const row = statement.get(values)
          migrate(other, file.path)
          return row
        }
        return { ...statement, get }
      }
    }
    const other = new Connection(openDriver(file.path))
    const raced = new RacedConnection(openDriver(file.path))
    expect(schemaVersion(raced, file.path)).toBe(0)
    expect(schemaVersion(raced, file.path)).toBe(SCHEMA_VERSION)
    raced.close()
    other.close()
  })
})

describe('a SQLite store', () => {
  it('keeps its contents over a restart, and never reuses an id', async () => {
    const first = open()
    const [made] = await first.runs.enqueue([newRun({ keep: 'none' })])
    await first.runs.cancel(made?.run ?? '')
    await first.close()
    const [next] = await open().runs.enqueue([newRun()])
    expect(Number.parseInt(next?.run ?? '', 10)).toBeGreaterThan(Number.parseInt(made?.run ?? '', 10))
  })

  it('leaves an empty log when it is closed', async () => {
    const store = sqlite({ path: file.path })
    await store.open()
    await store.freeze('a note')
    expect(statSync(`${file.path}-wal`).size).toBeGreaterThan(0)
    await store.close()
    expect(statSync(`${file.path}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0)
  })

  it('shares one transaction between writes of one event loop turn, and a write that throws does not affect the others', async () => {
    const store = open()
    await store.open()
    const circular: { self?: unknown } = {}
    circular.self = circular
    const broken = newRun({ payload: circular as never })
    const results = await Promise.allSettled([
      store.runs.enqueue([newRun()]),
      store.runs.enqueue([newRun(), broken]),
      store.runs.enqueue([newRun()]),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await store.runs.list({ limit: 10 })).items).toHaveLength(2)
  })

  it('stays open until the last instance that opened it has closed it', async () => {
    const store = open()
    await store.open()
    await store.open()
    await store.close()
    await expect(store.runs.enqueue([newRun()])).resolves.toHaveLength(1)
    await store.close()
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject({ code: 'NOT_RUNNING' })
    await store.open()
    expect((await store.runs.list({ limit: 10 })).items).toHaveLength(1)
  })

  it('can share a file with an application’s own tables', async () => {
    const db = rawHandle()
    db.exec('create table mine (a); pragma user_version = 7')
    await openOn(db).open()
    const connection = new Connection(openDriver(file.path))
    expect(schemaVersion(connection, file.path)).toBe(SCHEMA_VERSION)
    expect(connection.driver.prepare('pragma user_version').get([])).toEqual({ user_version: 7 })
    migrate(connection, file.path)
    connection.close()
    db.close()
  })
})
