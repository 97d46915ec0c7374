import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { SCHEMA_VERSION } from '../../src/stores/postgres/schema/migration-sql.js'
import { SCHEMA_VERSION as SQLITE_VERSION } from '../../src/stores/sqlite/schema/migrate.js'
import { serverUrl } from '../servers/server-url.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SCHEMA = `migrate_${process.pid}`

const CREATED = `created (version ${SCHEMA_VERSION})`
const UP_TO_DATE = `up to date (version ${SCHEMA_VERSION}), nothing to do`

interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

let pool: pg.Pool
let folder = ''
let url = ''
let place = ''

beforeAll(async () => {
  url = await serverUrl('postgres')
  place = `schema "${SCHEMA}" on ${new URL(url).host}`
  pool = new pg.Pool({ connectionString: url, max: 2 })
  folder = mkdtempSync(join(tmpdir(), 'belfry-migrate-'))
})

afterEach(() => pool.query(`drop schema if exists ${SCHEMA} cascade`))

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await pool.end()
})

async function belfry(args: readonly string[], env: NodeJS.ProcessEnv = {}, root = ROOT): Promise<Outcome> {
  const main = join(root, 'dist/cli/main.js')
  const { BELFRY_STORE: _, ...inherited } = process.env
  try {
    const options = { env: { ...inherited, ...env }, maxBuffer: 2 ** 24 }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [main, ...args], options)
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as Outcome
    return { code, stdout, stderr }
  }
}

const migrate = (...args: string[]) => belfry(['migrate', '--store', url, '--schema', SCHEMA, ...args])

async function versionNow(): Promise<number> {
  const { rows } = await pool.query(`select value from ${SCHEMA}.meta where name = 'schema'`)
  return Number(rows[0].value)
}

describe('belfry migrate on Postgres', () => {
  it('creates the tables, reports it in one line, and then finds nothing to do', async () => {
    expect(await migrate()).toEqual({ code: 0, stdout: `${place}: ${CREATED}\n`, stderr: '' })
    const again = `${place}: ${UP_TO_DATE}\n`
    expect(await migrate()).toEqual({ code: 0, stdout: again, stderr: '' })
  })

  it('reads the store from BELFRY_STORE', async () => {
    const { code, stdout } = await belfry(['migrate', '--schema', SCHEMA], { BELFRY_STORE: url })
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${place}: ${CREATED}\n` })
  })

  it('runs once when ten processes start at the same time', { timeout: 120_000 }, async () => {
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => migrate()))
    expect(outcomes.map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(10).fill({ code: 0, stderr: '' }))
    const lines = outcomes.map(({ stdout }) => stdout.replace(`${place}: `, '').trim()).sort()
    expect(lines).toEqual([CREATED, ...Array(9).fill(UP_TO_DATE)])
  })

  it('replaces the functions of an older release', async () => {
    await migrate()
    await pool.query(`update ${SCHEMA}.meta set value = 1 where name in ('functions', 'release')`)
    const report = `${place}: functions brought up to date (version ${SCHEMA_VERSION})\n`
    expect(await migrate()).toEqual({ code: 0, stdout: report, stderr: '' })
    expect(await versionNow()).toBe(SCHEMA_VERSION)
    expect((await pool.query(`select nextval('${SCHEMA}.proofs')`)).rowCount).toBe(1)
  })

  it('prints the SQL and changes nothing with --dry-run', async () => {
    const { code, stdout } = await migrate('--dry-run')
    expect(code).toBe(0)
    const { rows } = await pool.query('select 1 from pg_namespace where nspname = $1', [SCHEMA])
    expect(rows).toEqual([])
    // The printed SQL is complete: it creates the tables.
    await pool.query(stdout)
    expect(await versionNow()).toBe(SCHEMA_VERSION)
    expect((await migrate('--dry-run')).stdout).toBe(`-- ${place}: ${UP_TO_DATE}\n`)
  })

  it('refuses a schema that a newer version of Belfry created', async () => {
    await migrate()
    await pool.query(`update ${SCHEMA}.meta set value = 99`)
    for (const args of [[], ['--dry-run']]) {
      const { code, stdout, stderr } = await migrate(...args)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toBe(
        `belfry: the schema "${SCHEMA}" was written by a newer Belfry (version 99, this one knows ${SCHEMA_VERSION}): upgrade belfry here too\n`,
      )
    }
    expect(await versionNow()).toBe(99)
  })

  it('exits with 5 when the server does not answer, without printing the password', async () => {
    const { code, stdout, stderr } = await belfry(['migrate', '--store', 'postgres://me:secret@127.0.0.1:1/none'])
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    expect(stderr).toMatch(/^belfry: .*does not answer.*\n$/)
    expect(stderr).not.toContain('secret')
  })

  it('names the package to install when the driver is missing', async () => {
    const bare = join(folder, 'bare')
    mkdirSync(join(bare, 'node_modules'), { recursive: true })
    for (const part of ['dist', 'package.json']) cpSync(join(ROOT, part), join(bare, part), { recursive: true })
    for (const name of ['commander', 'cronstrue']) {
      symlinkSync(join(ROOT, 'node_modules', name), join(bare, 'node_modules', name))
    }
    const { code, stderr } = await belfry(['migrate', '--store', url], {}, bare)
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'belfry: the Postgres store needs the driver `pg` for a url: npm install pg\n',
    })
  })
})

describe('belfry migrate on SQLite', () => {
  it('creates the file, and then finds nothing to do', async () => {
    const path = join(folder, 'belfry.db')
    const dry = await belfry(['migrate', '--store', path, '--dry-run'])
    expect({ code: dry.code, made: existsSync(path) }).toEqual({ code: 0, made: false })
    expect(dry.stdout).toContain('create table belfry_schedules')
    expect((await belfry(['migrate', '--store', path])).stdout).toBe(
      `file "${path}": created (version ${SQLITE_VERSION})\n`,
    )
    const again = `file "${path}": up to date (version ${SQLITE_VERSION}), nothing to do\n`
    expect((await belfry(['migrate', '--store', path])).stdout).toBe(again)
    expect((await belfry(['migrate', '--store', path, '--dry-run'])).stdout).toBe(`-- ${again}`)
  })

  it.each(['sqlite:', 'sqlite://', 'file:', 'file://', 'FILE:'])('understands a path after %s', async (scheme) => {
    const path = join(folder, 'belfry.db')
    await belfry(['migrate', '--store', path])
    expect((await belfry(['migrate', '--store', `${scheme}${path}`])).stdout).toMatch(/^file ".*belfry.db": up to date/)
  })
})

describe('belfry migrate refuses, with exit code 2,', () => {
  const cases = {
    'no store': [[], /no store is given: pass --store, or set BELFRY_STORE/],
    'a store that it does not know': [
      ['--store', 'mongodb://x'],
      /there is no store of the kind "mongodb": use postgres/,
    ],
    'a scheme without slashes': [
      ['--store', 'mysql:x.db'],
      /there is no store of the kind "mysql".* \(\.\/mysql:… if its name has a colon\)/,
    ],
    'a URL without a path': [['--store', 'sqlite://'], /"sqlite:\/\/" names no file: write it as sqlite:belfry.db/],
    'a URL that cannot be read': [['--store', 'postgres://[x'], /the URL of --store cannot be read/],
    'a schema for a file': [['--store', 'belfry.db', '--schema', 'a'], /--schema is for Postgres and Redis/],
    'a store without tables': [['--store', 'redis://127.0.0.1:1'], /there is nothing to migrate on Redis/],
    'a schema that is no plain name': [['--store', 'postgres://x', '--schema', 'A-b'], /schema "A-b" is not allowed/],
    'an option that it does not know': [['--sotre', 'x'], /Did you mean --store/],
  } satisfies Record<string, [string[], RegExp]>

  it.each(Object.entries(cases))('%s', async (_, [args, message]) => {
    const { code, stdout, stderr } = await belfry(['migrate', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
  })
})
