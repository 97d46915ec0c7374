import { exec, execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ENTRIES } from '../../src/cli/command-list.js'
import { program } from '../../src/cli/program.js'
import { MAIN } from '../e2e/service.js'
import { belfry, type CliSetup, cliSetup, type Outcome } from './cli-setup.js'

let setup: CliSetup
let store = ''
let url = ''
/** Runs a command through the service. Such a command starts faster than one that opens the store. */
const run = (...args: string[]): Promise<Outcome> => belfry([...args, '--url', url])
const runOnStore = (...args: string[]): Promise<Outcome> => belfry([...args, ...setup.store])
const path = (name: string) => join(setup.folder, name)

beforeAll(async () => {
  setup = await cliSetup('sqlite')
  store = setup.store[1] ?? ''
  await setup.instance()
  url = (await setup.service()).url
  await run('put', 'digest/eu', '--cron', '0 9 * * 1-5', '--timezone', 'Europe/Berlin', '--job', 'greet')
}, 180_000)

afterAll(() => setup.close())

describe.concurrent('exit codes', () => {
  it.each([
    [2, ['get'], /^belfry: missing required argument 'id'/],
    [2, ['ls', '--stat', 'paused'], /Did you mean --state\?/],
    [2, ['lss'], /Did you mean ls\?/],
    [2, ['ls', '--state', 'paussed'], /Allowed choices are active, paused, finished/],
    [2, ['runs', '--state', 'faild'], /^belfry: --state: there is no state "faild"; did you mean failed\?\n$/],
    [2, ['put', 'a', '--cron', '0 25 * * *', '--job', 'x'], /^belfry: cron: field 2 \(hour\): 25 is out of range/],
    [2, ['put', 'a', '--every', '1h', '--job', 'x', '--payload', '{a}'], /^belfry: --payload: "\{a\}" is not JSON/],
    [2, ['enqueue', 'x', '--payload', '[9007199254740993]'], /the number 9007199254740993 cannot be held exactly/],
    [2, ['cancel', '--state', 'ready'], /^belfry: --state alone means runs of every schedule and job/],
    [2, ['retry', '--all', '--job', 'x'], /^belfry: --all means every run/],
    [2, ['pause'], /^belfry: give either ids of schedules, or --prefix/],
    [2, ['retry'], /^belfry: give either ids of runs/],
    [2, ['rm', '--prefix', ''], /add --yes/],
    [2, ['ls', '-o', 'xml'], /^belfry: --output: "xml" is not allowed; allowed are table, json, jsonl\n$/],
    [2, ['import', 'no/such/file'], /^belfry: the file "no\/such\/file" cannot be read: ENOENT.*\n$/],
    [3, ['get', 'nope'], /^belfry: there is no schedule "nope": belfry ls lists all\n$/],
    [3, ['pause', 'digest/e'], /^belfry: there is no schedule "digest\/e": did you mean "digest\/eu"\?\n$/],
    [2, ['next', 'digest/eu', '--tz', 'Nope/Zone'], /^belfry: time zone "Nope\/Zone" is unknown/],
    [2, ['cancel', '.'], /^belfry: "\." is not allowed as a name\n$/],
    [3, ['run', '999'], /^belfry: there is no run "999"/],
    [3, ['locks', 'reset', 'nobody'], /^belfry: "nobody" is not held\n$/],
    [4, ['put', 'digest/eu', '--every', '1h', '--job', 'x', '--if-version', '0'], /^belfry: /],
    [4, ['rm', 'digest/eu', '--if-version', '999'], /^belfry: /],
  ])('%i: belfry %s', { timeout: 180_000 }, async (code, args, message) => {
    const outcome = await run(...args)
    expect(outcome.stderr).toMatch(message)
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code, stdout: '' })
  })

  it('6: a wait timed out', { timeout: 180_000 }, async () => {
    const frozen = await run('freeze', '--note', 'stock-taking')
    expect(frozen).toMatchObject({ code: 0, stdout: expect.stringMatching(/^frozen since \S+: stock-taking\n$/) })
    const { code, stdout, stderr } = await run('trigger', 'digest/eu', '--wait', '1ms')
    expect({ code, stdout }).toEqual({ code: 6, stdout: '' })
    expect(stderr).toMatch(/^belfry: run \S+ is still \w+/)
    expect(await run('thaw')).toMatchObject({ code: 0, stdout: 'runs start again\n' })
  })

  it('5: the service does not answer; the message says what to do', async () => {
    const free = createServer()
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve))
    const { port } = free.address() as AddressInfo
    await new Promise((resolve) => free.close(resolve))
    const [service, followed, server] = await Promise.all([
      belfry(['ls', '--url', `http://127.0.0.1:${port}`]),
      belfry(['runs', '-f', '--url', `http://127.0.0.1:${port}`]),
      belfry(['ls', '--store', `redis://127.0.0.1:${port}`]),
    ])
    expect(service).toMatchObject({ code: 5, stdout: '' })
    expect(service.stderr).toBe(
      `belfry: no service answers on http://127.0.0.1:${port} (connect ECONNREFUSED 127.0.0.1:${port}): is it running, and reachable from here?\n`,
    )
    expect(followed).toEqual(service)
    expect(server).toMatchObject({ code: 5, stdout: '' })
  })
})

describe('settings', () => {
  it('come from a file; the environment overrides the file, and flags override both', async () => {
    const nowhere = path('nowhere.db')
    writeFileSync(path('belfry.json'), JSON.stringify({ store, output: 'json', port: 8080 }))
    const config = ['--config', path('belfry.json')]
    const [file, env, flag, both] = await Promise.all([
      belfry(['ls', ...config]),
      belfry(['ls', ...config], { BELFRY_OUTPUT: 'jsonl' }),
      belfry(['ls', ...config, '-o', 'table'], { BELFRY_OUTPUT: 'jsonl', BELFRY_STORE: nowhere, BELFRY_URL: '' }),
      belfry(['ls', '--store', nowhere, '--url', 'http://127.0.0.1:1']),
    ])
    expect(JSON.parse(file.stdout)).toEqual([expect.objectContaining({ id: 'digest/eu' })])
    expect(env.stdout).toMatch(/^\{"id":"digest\/eu".*\}\n$/)
    expect(flag).toEqual({
      code: 5,
      stdout: '',
      stderr: `belfry: there is no file "${nowhere}": belfry migrate --store ${nowhere} creates it\n`,
    })
    expect(both.stderr).toBe('belfry: --url and --store name two targets: give one of them\n')
  })
})

describe('files', () => {
  it('are applied with a diff, and drift has an exit code of its own', { timeout: 180_000 }, async () => {
    const shop = {
      'a/1': { every: '1h', job: 'greet', payload: { name: 'x', deep: { er: 1 } } },
      'a/2': { every: '2h', job: 'greet' },
    }
    writeFileSync(path('a.json'), JSON.stringify({ prefix: 'a/', schedules: shop }))
    expect((await runOnStore('apply', path('a.json'))).stdout).toBe(
      '+ a/1\n    every: "1h"\n    job: "greet"\n    payload.name: "x"\n    payload.deep.er: 1\n+ a/2\n    every: "2h"\n    job: "greet"\n',
    )
    const changed = { 'a/1': { every: '90m', job: 'greet', payload: { name: 'x', deep: { er: 2 } }, jitter: '5s' } }
    writeFileSync(path('a.json'), JSON.stringify({ prefix: 'a/', schedules: changed }))
    const drift = await runOnStore('apply', path('a.json'), '--prune', '--dry-run')
    expect(drift).toEqual({
      code: 8,
      stdout: '~ a/1\n    every: "1h" → "1h30m"\n    payload.deep.er: 1 → 2\n    jitter: "5s"\n− a/2\n',
      stderr: '0 to create, 1 to update, 1 to remove, 0 unchanged\n',
    })
    const [applied, odd, merged, twice, empty] = await Promise.all([
      runOnStore('apply', path('a.json'), '--prune', '-o', 'json'),
      belfry(
        ['apply', '-', ...setup.store],
        {},
        'schedules: { a/1: { every: 1h, jobb: x }, a/2: { every: 1x, job: x } }',
      ),
      belfry(
        ['apply', '-', '--dry-run', ...setup.store],
        {},
        'schedules:\n  a/3: &a { every: 1h, job: greet }\n  a/4: { <<: *a, every: 3h }\n',
      ),
      belfry(
        ['apply', '-', ...setup.store],
        {},
        'schedules:\n  a/1: { every: 1h, job: greet }\n  a/1: { every: 2h }\n',
      ),
      belfry(['apply', '-', ...setup.store], {}, 'just words'),
    ])
    const audit = await runOnStore('audit', '-n', '1', '-o', 'jsonl')
    expect(JSON.parse(audit.stdout)).toMatchObject({ caller: expect.stringMatching(/^command line \(.+\)$/) })
    expect(JSON.parse(applied.stdout)).toMatchObject({ applied: true, changes: [{ id: 'a/1' }, { id: 'a/2' }] })
    expect(twice).toMatchObject({ code: 2, stdout: '' })
    expect(twice.stderr).toMatch(/^belfry: standard input cannot be read: Map keys must be unique at line 3/)
    expect(odd).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'belfry: "a/1": jobb: there is no such field; did you mean job?\n  "a/2": every: duration "1x" is not understood: write "15m", "1h30m", "2d", "PT1H30M" or a number of milliseconds\n',
    })
    expect(merged).toMatchObject({
      code: 8,
      stdout: expect.stringContaining('+ a/4\n    every: "3h"\n    job: "greet"\n'),
    })
    expect(empty).toMatchObject({ code: 2, stdout: '' })
    expect(await runOnStore('apply', path('a.json'), '--dry-run')).toMatchObject({ code: 0, stdout: '' })
  })

  it('are exported and imported, and an interrupted import can be continued', { timeout: 180_000 }, async () => {
    const lines = Array.from({ length: 1_200 }, (_, at) =>
      JSON.stringify({ id: `many/${String(at).padStart(5, '0')}`, every: '1h', job: 'greet' }),
    )
    writeFileSync(path('many.jsonl'), `${lines.slice(0, 700).join('\n')}\n`)
    expect(await runOnStore('import', path('many.jsonl'), '--name', 'many')).toMatchObject({
      code: 0,
      stdout: '700 created, 0 updated, 0 unchanged, 0 refused\n',
    })
    writeFileSync(path('many.jsonl'), `${lines.join('\n')}`)
    expect(await runOnStore('import', path('many.jsonl'), '--name', 'many', '--resume')).toEqual({
      code: 0,
      stdout: '500 created, 0 updated, 0 unchanged, 0 refused\n',
      stderr: 'resuming at line 701\n',
    })
    expect((await runOnStore('export', '--prefix', 'many/', '--to', path('out.jsonl'))).stderr).toBe(
      `1200 schedules written to ${JSON.stringify(path('out.jsonl'))}\n`,
    )
    const whole = readFileSync(path('out.jsonl'), 'utf8')
    writeFileSync(path('out.jsonl'), whole.slice(0, Math.floor(whole.length / 2)))
    const resumed = await runOnStore('export', '--prefix', 'many/', '--to', path('out.jsonl'), '--resume')
    expect(resumed.stderr).toMatch(/^resuming after "many\/\d{5}"\n\d+ schedules written/)
    expect(readFileSync(path('out.jsonl'), 'utf8')).toBe(whole)
    writeFileSync(path('letter.txt'), 'Dear Ana,\nbye')
    const [letter, full, lost, nowhere] = await Promise.all([
      runOnStore('export', '--to', path('letter.txt'), '--resume'),
      runOnStore('export', '--to', '/dev/full'),
      promisify(exec)(`"${process.execPath}" "${MAIN}" export --store "${store}" > /dev/full`).catch((error) => error),
      runOnStore('export', '--to', path('no/such/folder')),
    ])
    expect(letter).toMatchObject({ code: 2, stderr: expect.stringContaining('is not an export of schedules') })
    expect(readFileSync(path('letter.txt'), 'utf8')).toBe('Dear Ana,\nbye')
    // The disk is full: the command reports it and exits.
    expect(full).toMatchObject({ code: 2, stderr: expect.stringContaining('ENOSPC') })
    expect(lost).toMatchObject({ code: 1, stderr: 'belfry: ENOSPC: no space left on device, write\n' })
    expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be written') })
    expect((await runOnStore('ls', 'many/', '-n', '3')).stderr).toBe(
      'there are more than 3: --limit or --all shows them\n',
    )
  })
})

describe('the other commands', () => {
  it('read and change the store', { timeout: 180_000 }, async () => {
    const [job, instances, stats, audit, explained, next, backfilled] = await Promise.all([
      run('jobs'),
      run('instances', '-o', 'json'),
      run('stats'),
      run('audit', '-n', '1', '-o', 'jsonl'),
      run('explain', 'digest/eu', '--at', '2020-01-01T09:00'),
      run('next', 'digest/eu', '-n', '1', '--from', '2026-03-27T12:00:00Z'),
      run('backfill', 'digest/eu', '--from', '2026-03-02T00:00Z', '--to', '2026-03-03T23:00Z'),
    ])
    expect(job.stdout).toMatch(
      /^JOB +INSTANCES +EXCLUSIVE\nbreak +1 +no\ngreet +1 +no\nhold +1 +by payload; skips when busy\n$/,
    )
    expect(JSON.parse(instances.stdout)).toEqual([
      expect.objectContaining({ live: true, app: 'shop', clockSkewMs: expect.any(Number) }),
    ])
    expect(stats.stdout).toMatch(/^instances {2}1 live\n/)
    expect(JSON.parse(audit.stdout)).toMatchObject({ role: 'admin', action: expect.any(String) })
    expect(explained.stdout).toMatch(/before-creation\nThe schedule was created later/)
    expect(next.stdout).toMatch(/Mon 2026-03-30 09:00:00 \+02:00/)
    expect(backfilled).toMatchObject({ code: 0, stdout: '2 enqueued\n' })

    const enqueued = await run('enqueue', 'greet', '--payload', '{"name":"Ana"}', '--wait', '60s')
    expect(enqueued).toMatchObject({ code: 0, stdout: expect.stringMatching(/^run \S+ {2}succeeded\n/) })
    const later = await run('enqueue', 'greet', '--in', '1h', '--key', 'once', '-o', 'json')
    expect(JSON.parse(later.stdout)).toMatchObject({ outcome: 'enqueued' })
    expect(await run('enqueue', 'greet', '--in', '1h', '--key', 'once')).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^belfry: "greet" was not run: run \S+ has this --key/),
    })

    const unknown = await run('enqueue', 'grate')
    expect(unknown.stdout).toMatch(/^run \S+ {2}waiting for a worker that knows the job\n/)
    expect((await run('runs', '--job', 'grate')).stdout).toMatch(/waiting for a worker that knows the job/)
    expect(await run('enqueue')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/give the name of a job, or a sink as --to/),
    })
    expect(await run('enqueue', '--to', 'nowhere')).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/there is no sink "nowhere"/),
    })

    await run('put', 'tz', '--cron', '0 9 * * *', '--tz', 'Asia/Tokyo', '--job', 'greet')
    expect((await run('get', 'tz')).stdout).toMatch(/timezone +Asia\/Tokyo/)
    await run('pause', 'tz')
    expect(await run('resume', 'tz', '--note', 'back again')).toMatchObject({ code: 0 })
    expect((await run('audit', '-o', 'jsonl')).stdout).toMatch(/"schedule.resume".*back again/)
    await run('rm', 'tz', '--yes')

    await run('put', 'h', '--every', '1d', '--job', 'hold')
    const held = JSON.parse((await run('trigger', 'h', '-o', 'json')).stdout) as { runId: string }
    await expect.poll(async () => (await run('locks', '-o', 'jsonl')).stdout, { timeout: 60_000 }).toContain(held.runId)
    const busy = await run('trigger', 'h', '--wait', '60s')
    expect(busy).toMatchObject({ code: 1, stdout: expect.stringMatching(/^run \S+ {2}skipped \(busy\)\n/) })
    const { name } = JSON.parse((await run('locks', '-o', 'jsonl')).stdout) as { name: string }
    const reset = await run('locks', 'reset', name)
    expect(reset).toMatchObject({ code: 0, stdout: `${name}: taken from its holder\n` })
    const cancelled = await run('cancel', held.runId)
    expect(cancelled.stdout).toMatch(/(cancelled|requested)\n$/)
    const shown = await run('run', held.runId)
    expect(shown.stdout).toMatch(/^run \S+ {2}\w+\nschedule +h\n/)
    expect(await run('retry', held.runId)).toMatchObject({ code: expect.any(Number) })
  })

  it('print no control characters that could move the cursor', async () => {
    await run('put', 'evil', '--every', '1h', '--job', 'greet')
    await run('pause', 'evil', '--note', 'red \u001b[31malert\u0007')
    const { stdout } = await run('get', 'evil')
    expect(stdout).toContain('red \\u001b[31malert\\u0007')
    expect(stdout).not.toContain('\u001b')
  })
})

describe('help', () => {
  it('has examples for every command, within 80 columns', async () => {
    const root = await program(ENTRIES.map(({ name }) => name))
    expect(ENTRIES).toHaveLength(35)
    const pages: [string, string][] = []
    const collect = (command: Command, name: string) => {
      let page = ''
      command.configureOutput({
        writeOut: (text) => {
          page += text
        },
        getOutHelpWidth: () => 80,
      })
      command.outputHelp()
      pages.push([name, page])
      for (const sub of command.commands) collect(sub, `${name} ${sub.name()}`)
    }
    collect(root, 'belfry')
    expect(pages.length).toBeGreaterThan(36)
    for (const [name, page] of pages) {
      for (const line of page.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80)
      const isGroup = ['belfry', 'belfry token', 'belfry lock', 'belfry locks', 'belfry redis'].includes(name)
      if (!isGroup) expect(page, name).toContain('Examples:')
    }
  })
})

const asModule = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`

/** The files that Node loads for a command. Unlike a duration, the list does not depend on how busy the machine is. */
async function loadedFor(...args: string[]): Promise<string[]> {
  const load = "(url, context, next) => (writeSync(2, url + '\\n'), next(url, context))"
  const teller = asModule(`import { writeSync } from 'node:fs'\nexport const load = ${load}`)
  const hook = `import { register } from 'node:module'\nregister(${JSON.stringify(teller)})`
  const { stderr } = await promisify(execFile)(process.execPath, ['--import', asModule(hook), MAIN, ...args])
  return stderr.split('\n').filter((line) => line.startsWith('file:'))
}

const NEXT = ['next', '0 9 * * 1-5', '--tz', 'Europe/Berlin']

describe('starting', () => {
  it('loads only what --help and next need', { timeout: 60_000 }, async () => {
    const [help, next] = await Promise.all([loadedFor('--help'), loadedFor(...NEXT)])
    expect(help.length).toBeLessThanOrEqual(10)
    expect(next.length).toBeLessThanOrEqual(12)
    const others = /\/(server|stores|engine|zod|hono|yaml|pino)\//
    expect([...help, ...next].filter((file) => others.test(file))).toEqual([])
    expect(next.some((file) => file.endsWith('/dist/cli/commands/next.js'))).toBe(true)
  })

  it('takes less than 200 ms of processor time for --help and next, on a machine where Node itself takes 60', {
    timeout: 180_000,
  }, async () => {
    // Measures processor time: elapsed time depends on the load of the machine.
    const hook = asModule("process.on('exit', () => process.stderr.write(JSON.stringify(process.cpuUsage())))")
    const took = async (args: readonly string[]) => {
      const { stderr } = await promisify(execFile)(process.execPath, ['--import', hook, ...args])
      const { user, system } = JSON.parse(stderr) as NodeJS.CpuUsage
      return (user + system) / 1_000
    }
    const least = { bare: Number.POSITIVE_INFINITY, help: Number.POSITIVE_INFINITY, next: Number.POSITIVE_INFINITY }
    const commands = { bare: ['-e', '0'], help: [MAIN, '--help'], next: [MAIN, ...NEXT] }
    // Alternates between the commands, so that a busy moment affects all of them.
    for (let at = 0; at < 6; at += 1) {
      for (const name of ['bare', 'help', 'next'] as const) {
        least[name] = Math.min(least[name], await took(commands[name]))
      }
    }
    const slowness = Math.max(least.bare / 60, 1)
    expect(least.help).toBeLessThan(200 * slowness)
    expect(least.next).toBeLessThan(200 * slowness)
  })
})
