import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { cleanEnv, MAIN } from '../e2e/service.js'
import { belfry, type CliSetup, cliSetup } from './cli-setup.js'

const PATIENCE = { timeout: 60_000, interval: 50 }
const LEASE_MS = 4_000

let setup: CliSetup

beforeAll(async () => {
  setup = await cliSetup('sqlite')
}, 180_000)

afterAll(() => setup.close())

/** A host that runs the crontab. */
class Host {
  said = ''
  readonly exited: Promise<readonly unknown[]>
  readonly #child: ChildProcess

  constructor(file: string, ...options: string[]) {
    const args = [
      'crontab',
      file,
      '--lease',
      `${LEASE_MS}ms`,
      '--tz',
      'UTC',
      '--grace',
      '500ms',
      ...setup.store,
      ...options,
    ]
    this.#child = spawn(process.execPath, [MAIN, ...args], { env: cleanEnv(), stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.said += text
    })
    this.exited = once(this.#child, 'exit')
    hosts.add(this)
  }

  async says(what: RegExp): Promise<void> {
    await expect.poll(() => this.said, PATIENCE).toMatch(what)
  }

  async end(signal: NodeJS.Signals): Promise<unknown> {
    this.#child.kill(signal)
    return (await this.exited)[0]
  }
}

const hosts = new Set<Host>()

afterEach(async () => {
  await Promise.all([...hosts].map((host) => host.end('SIGKILL')))
  hosts.clear()
})

const path = (name: string) => join(setup.folder, name)
const written = (name: string) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8').trim().split('\n') : [])

/** The ticks that a line wrote to its file, as whole seconds since the first. */
function ticksIn(name: string): number[] {
  const instants = written(name).map((tick) => Date.parse(tick))
  return instants.map((at) => Math.round((at - (instants[0] ?? 0)) / 1_000)).sort((one, other) => one - other)
}

describe('belfry crontab', () => {
  it('runs every line once over three hosts, and loses no tick when one host is killed', {
    timeout: 180_000,
  }, async () => {
    writeFileSync(
      path('jobs.cron'),
      `@every 1s echo $BELFRY_TICK >> ${path('one')}\nWHO="you all"\n@every 1s echo $BELFRY_TICK >> ${path('two')}; echo "hello $WHO"\n`,
    )
    const three = Array.from({ length: 3 }, () => new Host(path('jobs.cron')))
    await Promise.all(three.map((host) => host.says(/2 lines of .*jobs\.cron/)))
    await expect.poll(() => written('one').length, PATIENCE).toBeGreaterThanOrEqual(3)
    expect(new Set(ticksIn('one')).size).toBe(ticksIn('one').length)
    // Kills a host in the second of a tick, right after a line was written.
    const before = written('one').length
    await expect.poll(() => written('one').length, { ...PATIENCE, interval: 1 }).toBeGreaterThan(before)
    await three[0]?.end('SIGKILL')
    await expect.poll(() => written('one').length, PATIENCE).toBeGreaterThanOrEqual(before + 6)
    // Another host repeats the killed host's runs, so the last entry may be an older tick.
    for (const name of ['one', 'two']) {
      await expect.poll(() => missing(ticksIn(name).slice(0, before + 4)), PATIENCE).toEqual([])
    }
    expect(await three[1]?.end('SIGTERM')).toBe(0)
    const log = await belfry(['runs', '--state', 'succeeded', '-n', '20', '-o', 'jsonl', ...setup.store])
    const runs = log.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; schedule: string })
    const chatty = runs.find(({ schedule }) => /echo-/.test(schedule) && schedule !== runs[0]?.schedule) ?? runs[0]
    const shown = await Promise.all([runs[0], chatty].map((run) => belfry(['run', run?.id ?? '', ...setup.store])))
    expect(shown.map(({ stdout }) => stdout).join('\n')).toContain('log of attempt 1:\nhello you all\n')
  })

  it('ends the commands of a killed host, and another host runs them again', { timeout: 180_000 }, async () => {
    writeFileSync(path('long.cron'), `@every 1h trap '' TERM; echo $$ >> ${path('pids')}; sleep 60\n`)
    const [first, second] = [new Host(path('long.cron')), new Host(path('long.cron'))]
    await Promise.all([first.says(/1 lines/), second.says(/1 lines/)])
    const { stdout } = await belfry(['ls', 'crontab/long.cron/', '-o', 'jsonl', ...setup.store])
    await belfry(['trigger', JSON.parse(stdout).id, ...setup.store])
    await expect.poll(() => written('pids').length, PATIENCE).toBe(1)
    const { instance } = JSON.parse(
      (await belfry(['runs', '--state', 'running', '-o', 'jsonl', ...setup.store])).stdout,
    ) as { instance: string }
    const host = first.said.includes(instance) ? first : second
    await host.end('SIGKILL')
    await expect.poll(() => written('pids').length, PATIENCE).toBe(2)
    const [pid = ''] = written('pids')
    expect(
      existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('sleep 60'),
    ).toBe(false)
    const other = host === first ? second : first
    // The stopping host exits with 0, although it has to kill its command, which ignores SIGTERM.
    expect(await other.end('SIGTERM')).toBe(0)
  })

  it('never executes a command from the store', { timeout: 180_000 }, async () => {
    // Bash must not source this file. It would if it took its stdin, which is a socket, for a remote login.
    writeFileSync(path('.bashrc'), `touch ${path('evil')}\n`)
    const bash = `SHELL=/bin/bash\nHOME=${setup.folder}\n`
    writeFileSync(path('safe.cron'), `${bash}@every 1h cat >> ${path('mine')}%mine\n`)
    const host = new Host(path('safe.cron'))
    await host.says(/1 lines/)
    const evil = { command: `touch ${path('evil')}`, line: 'x' }
    const on = (...args: string[]) => belfry([...args, ...setup.store])
    const { id, ...line } = JSON.parse((await on('ls', 'crontab/safe.cron/', '-o', 'jsonl')).stdout) as { id: string }
    // While no host is live, other instances may still record ticks. A host skips those that are over a minute late.
    expect(line).toMatchObject({ missed: 'skip', deadline: '1m' })
    await on(
      'put',
      'a',
      '--every',
      '1h',
      '--job',
      'crontab/safe.cron/touch-0123456789abcdef',
      '--payload',
      JSON.stringify(evil),
    )
    await on('trigger', 'a')
    const own = await on('trigger', id, '--payload', JSON.stringify(evil), '--wait', '60s')
    expect(own.code).toBe(0)
    expect(written('mine')).toEqual(['mine'])
    expect(existsSync(path('evil'))).toBe(false)
    const { stdout } = await on('runs', '--schedule', 'a', '-o', 'json')
    expect(JSON.parse(stdout)).toEqual([expect.objectContaining({ state: 'waiting' })])
  })

  it('refuses to start with a line that it cannot run', async () => {
    writeFileSync(path('bad.cron'), '0 25 * * * true\n')
    writeFileSync(path('user.cron'), '* * * * * nobody-of-that-name true\n')
    const [bad, user, checked] = await Promise.all([
      belfry(['crontab', path('bad.cron'), ...setup.store]),
      belfry(['crontab', path('user.cron'), '--system-format', ...setup.store]),
      belfry(['crontab', path('user.cron'), '--check', '--tz', 'Europe/Berlin']),
    ])
    expect(bad).toMatchObject({ code: 2, stdout: '' })
    expect(bad.stderr).toMatch(/^belfry: line 1 of the crontab: field 2 \(hour\): 25 is out of range/)
    expect(user.stderr).toBe('belfry: line 1 of the crontab: there is no user "nobody-of-that-name" on this host\n')
    expect(checked.stdout).toMatch(
      /^line 1 {2}[0-9a-f]{16} {2}Every minute, Europe\/Berlin time\n {2}next .*\n {2}nobody/,
    )
  })
})

/** The seconds without a tick, up to the last tick. */
function missing(ticks: readonly number[]): number[] {
  const last = ticks.at(-1) ?? 0
  return Array.from({ length: last + 1 }, (_, at) => at).filter((at) => !ticks.includes(at))
}
