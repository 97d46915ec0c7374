import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cleanEnv, MAIN } from '../e2e/service.js'
import { belfry, type CliSetup, cliSetup, KINDS, type Kind } from './cli-setup.js'

const LEASE_MS = 3_000
const PATIENCE = { timeout: 60_000, interval: 20 }

const setups = new Map<Kind, CliSetup>()
let setup: CliSetup
let made = 0

beforeAll(async () => {
  for (const kind of KINDS) setups.set(kind, await cliSetup(kind))
  setup = on('sqlite')
}, 180_000)

afterAll(() => Promise.all([...setups.values()].map((each) => each.close())))

function on(kind: Kind): CliSetup {
  const found = setups.get(kind)
  if (found === undefined) throw new Error(`there is no ${kind}`)
  return found
}

const children = new Set<ChildProcess>()

/** One holder: `belfry lock exec` and its program, which logs when it starts and ends. */
class Holder {
  readonly log: string
  said = ''
  readonly exited: Promise<readonly unknown[]>
  readonly #child: ChildProcess

  constructor(lock: string, script: string, where: readonly string[], ...options: string[]) {
    made += 1
    this.log = join(setup.folder, `log-${made}`)
    writeFileSync(this.log, '')
    const args = ['lock', 'exec', lock, '--ttl', `${LEASE_MS}ms`, ...options, ...where, '--', 'sh', '-c', script]
    const env = cleanEnv({ LOG: this.log, NAME: String(made) })
    // In a process group of its own, like a process on another host.
    this.#child = spawn(process.execPath, [MAIN, ...args], {
      env,
      detached: true,
      stdio: ['ignore', 'inherit', 'pipe'],
    })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.said += text
    })
    this.exited = once(this.#child, 'exit')
    children.add(this.#child)
  }

  get written(): string {
    return readFileSync(this.log, 'utf8')
  }

  async writes(what: RegExp): Promise<void> {
    await expect.poll(() => this.written, PATIENCE).toMatch(what)
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }
}

afterAll(() => {
  for (const child of children) if (child.exitCode === null) child.kill('SIGKILL')
})

/** Appends one line with the token when the program starts and one when it ends. */
const SECTION = (file: string) =>
  `echo "in $NAME $BELFRY_LOCK_TOKEN" >> ${file}; sleep 0.15; echo "out $NAME $BELFRY_LOCK_TOKEN" >> ${file}`
/** Logs its pid and token, and ignores SIGTERM. */
const STUBBORN = `trap "" TERM; echo "pid $$ token $BELFRY_LOCK_TOKEN" >> $LOG; while :; do sleep 0.1; done`
const WAITER = `echo "token $BELFRY_LOCK_TOKEN" >> $LOG`

function pidIn({ written }: Holder): number {
  return Number(/pid (\d+)/.exec(written)?.[1])
}

function tokenIn({ written }: Holder): number {
  return Number(/token (\d+)/.exec(written)?.[1])
}

function isAlive(pid: number): boolean {
  // A zombie process has ended; it only waits for its parent to collect the exit status.
  if (!existsSync(`/proc/${pid}/stat`)) return false
  return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
}

describe('belfry lock exec', () => {
  it('never admits two holders, through the store or through the service', { timeout: 180_000 }, async () => {
    const { url } = await setup.service()
    const file = join(setup.folder, 'section')
    const ways = [setup.store, ['--url', url], setup.store, ['--url', url], setup.store, setup.store]
    const holders = ways.map((where) => new Holder('one', SECTION(file), where, '--wait', '120s'))
    const codes = await Promise.all(holders.map(async ({ exited }) => (await exited)[0]))
    expect(codes).toEqual([0, 0, 0, 0, 0, 0])
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    expect(lines).toHaveLength(12)
    const tokens: number[] = []
    for (let at = 0; at < lines.length; at += 2) {
      const [, who, token] = /^in (\d+) (\d+)$/.exec(lines[at] ?? '') ?? []
      expect(lines[at + 1]).toBe(`out ${who} ${token}`)
      tokens.push(Number(token))
    }
    expect(tokens).toEqual([...tokens].sort((one, other) => one - other))
  })

  it('passes on exit codes, and has its own for a program that was not started', { timeout: 180_000 }, async () => {
    const exec = (...args: string[]) => belfry(['lock', 'exec', ...args])
    const [where, sh] = [setup.store, (script: string) => ['--', 'sh', '-c', script]]
    const [seven, killed, missing, forbidden, semaphore] = await Promise.all([
      exec('a', ...where, ...sh('echo "$BELFRY_LOCK_NAME"; echo oops >&2; exit 7')),
      exec('b', ...where, ...sh('kill -KILL $$')),
      exec('c', ...where, '--', 'no-such-program'),
      exec('d', ...where, '--', '/etc/passwd'),
      exec('e', ...where, '--permits', '2', ...sh('exit 0')),
    ])
    expect(seven).toEqual({ code: 7, stdout: 'a\n', stderr: 'oops\n' })
    expect(killed.code).toBe(137)
    expect(missing).toEqual({ code: 127, stdout: '', stderr: 'belfry: no-such-program: there is no such program\n' })
    expect(forbidden.code).toBe(126)
    expect(semaphore.code).toBe(0)
    const holder = new Holder('busy', `${WAITER}; sleep 30`, setup.store)
    await holder.writes(/token/)
    const [busy, late] = await Promise.all([
      exec('busy', ...where, '--', 'true'),
      exec('busy', ...where, '--wait', '300ms', '--', 'true'),
    ])
    expect(busy).toMatchObject({ code: 4, stdout: '' })
    expect(late).toMatchObject({ code: 6, stdout: '' })
    // The program receives the signal; its exit status is passed on, and the lock is released.
    holder.kill('SIGTERM')
    expect((await holder.exited)[0]).toBe(143)
    expect((await exec('busy', ...where, '--', 'true')).code).toBe(0)
  })

  it('ends the program and reports it when the lock was taken away', { timeout: 180_000 }, async () => {
    const holder = new Holder(
      'taken',
      `echo "pid $$" >> $LOG; trap 'echo asked >> $LOG; exit 0' TERM; while :; do sleep 0.1; done`,
      setup.store,
    )
    await holder.writes(/pid/)
    expect((await belfry(['locks', 'reset', 'taken', ...setup.store])).code).toBe(0)
    expect((await holder.exited)[0]).toBe(1)
    expect(holder.written).toContain('asked')
    expect(holder.said).toContain('belfry: the lock "taken" was lost: ')
  })

  it('reports a lost lock when only the release notices it', { timeout: 180_000 }, async () => {
    const done = join(setup.folder, 'done')
    // With a TTL of an hour, no renewal comes before the program ends.
    const untilDone = `echo "token $BELFRY_LOCK_TOKEN" >> $LOG; while [ ! -e ${done} ]; do sleep 0.1; done`
    const holder = new Holder('late', untilDone, setup.store, '--ttl', '1h')
    await holder.writes(/token/)
    expect((await belfry(['locks', 'reset', 'late', ...setup.store])).code).toBe(0)
    writeFileSync(done, '')
    expect((await holder.exited)[0]).toBe(1)
    expect(holder.said).toContain('belfry: the lock "late" was lost: another holder acquired it before the release')
  })
})

describe.each(KINDS)('belfry lock exec on %s', (kind) => {
  it.concurrent('gives a killed holder’s lock to another within 1.5 leases, and ends its program', {
    timeout: 180_000,
  }, async () => {
    const { store } = on(kind)
    const first = new Holder('killed', STUBBORN, store)
    await first.writes(/pid/)
    const second = new Holder('killed', WAITER, store, '--wait', '60s')
    await expect.poll(() => second.said, PATIENCE).toContain('waiting for the lock "killed"')
    first.kill('SIGKILL')
    const killedAt = performance.now()
    await second.writes(/token/)
    expect(performance.now() - killedAt).toBeLessThan(LEASE_MS * 1.5)
    expect(isAlive(pidIn(first))).toBe(false)
    expect(tokenIn(second)).toBeGreaterThan(tokenIn(first))
    expect((await second.exited)[0]).toBe(0)
  })

  it.concurrent('ends the program of a holder that is stopped past its lease, before another acquires the lock', {
    timeout: 180_000,
  }, async () => {
    const { store } = on(kind)
    const first = new Holder('stopped', STUBBORN, store)
    await first.writes(/pid/)
    const second = new Holder(
      'stopped',
      `kill -0 ${pidIn(first)} && echo both >> $LOG; ${WAITER}`,
      store,
      '--wait',
      '20s',
    )
    await expect.poll(() => second.said, PATIENCE).toContain('waiting for the lock "stopped"')
    first.kill('SIGSTOP')
    await second.writes(/token/)
    expect(second.written).not.toContain('both')
    expect(isAlive(pidIn(first))).toBe(false)
    first.kill('SIGCONT')
    expect((await first.exited)[0]).toBe(137)
  })
})
