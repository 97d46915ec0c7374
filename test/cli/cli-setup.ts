/**
 * A store of each kind, an instance with jobs on it, and the built command line, which opens the store itself or sends
 * requests to the service.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { type Belfry, createBelfry, silentLogger } from '../../src/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { cleanEnv, MAIN, Service } from '../e2e/service.js'
import { serverUrl } from '../servers/server-url.js'

export const KINDS = ['sqlite', 'postgres', 'redis'] as const
export type Kind = (typeof KINDS)[number]

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface CliSetup {
  readonly folder: string
  /** The command line options that select the store. */
  readonly store: readonly string[]
  /**
   * Starts an instance with the jobs `greet`, `break` (fails until the file `mended` exists) and `hold`, which is
   * exclusive.
   */
  instance(): Promise<Belfry>
  service(): Promise<Service>
  close(): Promise<void>
}

let made = 0

export async function cliSetup(kind: Kind): Promise<CliSetup> {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-cli-'))
  made += 1
  const schema = `c${process.pid}_${Date.now().toString(36)}_${made}`
  const url = kind === 'sqlite' ? join(folder, 'belfry.db') : await serverUrl(kind)
  const store = kind === 'sqlite' ? ['--store', url] : ['--store', url, '--schema', schema]
  if (kind !== 'redis') {
    const { code, stderr } = await belfry(['migrate', ...store])
    if (code !== 0) throw new Error(stderr)
  }
  const open = () => {
    if (kind === 'sqlite') return sqlite({ path: url })
    return kind === 'postgres' ? postgres({ url, schema }) : redis({ url, prefix: `${schema}:` })
  }
  const ends: (() => Promise<unknown>)[] = []
  return {
    folder,
    store,
    async instance() {
      const instance = createBelfry({ store: open(), logger: silentLogger, app: 'shop', lease: '5s' })
      addJobs(instance, folder)
      await instance.start()
      ends.push(() => instance.stop({ grace: 0 }))
      return instance
    },
    async service() {
      const service = new Service([...store, '--port', '0', '--roles', 'api'])
      ends.push(() => service.stop())
      return listening(service)
    },
    async close() {
      await Promise.all(ends.map((end) => end()))
      if (kind === 'postgres') await dropSchema(url, schema)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Waits until the service listens. Does not use `expect.poll`, because it also runs outside of a test. */
async function listening(service: Service): Promise<Service> {
  for (let waited = 0; waited < 60_000; waited += 20) {
    const [, url] = /listening on (http:\/\/\S+)/.exec(service.output) ?? []
    if (url !== undefined) return Object.assign(service, { url })
    await setTimeout(20)
  }
  throw new Error(`the service did not start: ${service.output}`)
}

function addJobs(instance: Belfry, folder: string): void {
  instance.job<Record<string, unknown> | null>('greet', { run: ({ payload }) => ({ greeted: payload?.name ?? 'all' }) })
  instance.job<null>('break', {
    retry: { attempts: 1 },
    run: () => {
      if (!existsSync(join(folder, 'mended'))) throw new Error('out of paper')
    },
  })
  instance.job<null>('hold', {
    exclusive: { whenBusy: 'skip' },
    run: ({ signal }) =>
      new Promise((resolve, reject) => {
        if (existsSync(join(folder, 'mended'))) resolve(null)
        signal.addEventListener('abort', () => reject(signal.reason))
      }),
  })
}

async function dropSchema(connectionString: string, schema: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(`drop schema if exists ${schema} cascade`)
  await client.end()
}

/** Runs the built command line to its end. */
export function belfry(args: readonly string[], env: Record<string, string> = {}, input = ''): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { env: cleanEnv(env), maxBuffer: 2 ** 26 }
    const child = execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr })
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}
