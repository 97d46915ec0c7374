/**
 * A Postgres server for a single test, which can be stopped, crashed and misconfigured. It ends with the process that
 * started it.
 */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { wrongClock } from '../servers/faketime.js'
import { postgresBinaries } from '../servers/postgres.js'

export interface OwnPostgres {
  readonly url: string
  /** `immediate` simulates a crash. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  /** Copies the data, as a backup of a stopped server. */
  keepCopy(): Promise<void>
  /** Crashes, and starts again with the copied data: all that was written since is lost. The clock may be off from then on. */
  restoreCopy(options?: { readonly skewMs?: number }): Promise<void>
  /** Runs SQL as the superuser, over its own connection. */
  sql(text: string): Promise<readonly unknown[]>
  remove(): Promise<void>
}

/** Stops the server when its input closes, because the process that started it has ended. */
const KEEPER = `cat > /dev/null
"$1" -D "$2/data" -m immediate stop > /dev/null 2>&1
rm -rf "$2"`

export async function ownPostgres(settings: Readonly<Record<string, string>> = {}): Promise<OwnPostgres> {
  const binaries = postgresBinaries()
  const folder = mkdtempSync(join(tmpdir(), 'belfry-own-postgres-'))
  const user = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {}
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
  // Runs asynchronously, so that the instance under test continues meanwhile.
  let env = process.env
  const run = async (command: string, ...args: string[]) => {
    const options = { cwd: folder, ...user, env }
    await promisify(execFile)(join(binaries, command), ['-D', join(folder, 'data'), ...args], options)
  }
  await run('initdb', '-U', 'belfry', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync')
  const port = await freePort()
  const all = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    log_min_messages: 'fatal',
    ...settings,
  }
  const flags = Object.entries(all).map(([name, value]) => `-c ${name}='${value}'`)
  const start = () => run('pg_ctl', '-w', '-s', '-l', join(folder, 'log'), '-o', flags.join(' '), 'start')
  await start()
  const keeper = spawn('sh', ['-c', KEEPER, 'sh', join(binaries, 'pg_ctl'), folder], {
    ...{ cwd: folder, ...user, detached: true },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const url = `postgres://belfry@127.0.0.1:${port}/postgres`
  const stop = (mode: 'fast' | 'immediate') => run('pg_ctl', '-w', '-s', '-m', mode, 'stop')
  const copy = (from: string, to: string) =>
    promisify(execFile)('cp', ['-rp', join(folder, from), join(folder, to)], { cwd: folder, ...user })
  return {
    url,
    start,
    stop,
    async keepCopy() {
      await stop('fast')
      rmSync(join(folder, 'copy'), { recursive: true, force: true })
      await copy('data', 'copy')
      await start()
    },
    async restoreCopy({ skewMs = 0 } = {}) {
      await stop('immediate')
      rmSync(join(folder, 'data'), { recursive: true })
      await copy('copy', 'data')
      if (skewMs !== 0) env = { ...process.env, ...wrongClock(skewMs) }
      await start()
    },
    sql: (text) => queried(url, text),
    async remove() {
      keeper.stdin.end()
      await once(keeper, 'exit')
    },
  }
}

async function queried(connectionString: string, text: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** The user id or group id of `postgres`, because the server refuses to run as root. */
function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { readonly port: number }
  server.close()
  return port
}
