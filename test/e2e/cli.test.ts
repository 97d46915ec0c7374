import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { curl } from './service.js'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function belfry(...args: string[]): Promise<Outcome> {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [MAIN, ...args])
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as Outcome
    return { code, stdout, stderr }
  }
}

describe('belfry next', () => {
  it('prints upcoming ticks for people', async () => {
    const { code, stdout, stderr } = await belfry(
      ...['next', '0 9 * * 1-5', '--tz', 'Europe/Berlin', '-n', '3', '--from', '2026-03-27T12:00:00Z'],
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('At 09:00, Monday through Friday, Europe/Berlin time')
    expect(stdout).toMatch(/Mon 2026-03-30 09:00:00 \+02:00/)
    expect(stdout.trim().split('\n')).toHaveLength(5)
  })

  it('prints JSON lines for programs', async () => {
    const { stdout } = await belfry('next', '@daily', '-n', '2', '--from', '2026-03-27T12:00:00Z', '-o', 'jsonl')
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).at),
    ).toEqual(['2026-03-28T00:00:00.000Z', '2026-03-29T00:00:00.000Z'])
  })

  it('reports an invalid expression on stderr, and exits with 2', async () => {
    const { code, stdout, stderr } = await belfry('next', '0 25 * * *')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe('belfry: field 2 (hour): 25 is out of range 0–23 (at character 3)\n')
  })
})

describe('belfry next with hasty input', () => {
  it.each([
    ['0', '9', 'package.json', 'src', '1-5'],
    ['0', '9', '*', '*', '1-5'],
  ])('tells the user to quote an expression that the shell has split: %s %s %s %s %s', async (...words) => {
    const { code, stdout, stderr } = await belfry('next', ...words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(
      /^belfry: the expression arrived as 5 words: .*\. Quote it, as in belfry next "0 9 \* \* 1-5"\n$/,
    )
  })

  it('reports that an instant is past, and how long ago', async () => {
    const { code, stdout } = await belfry('next', '@at 2020-01-01T00:00:00Z')
    expect(code).toBe(0)
    expect(stdout).toMatch(/no more ticks; the last tick was\n {2}Wed 2020-01-01 00:00:00 \+00:00 {3}.*years.* ago\n$/)
  })

  it.each([
    [['next'], /^belfry: missing required argument 'expression'\n\(--help shows examples\)\n$/],
    [['next', '@daily', '--from', 'gestern'], /^belfry: --from: instant "gestern" is not understood/],
    [['next', '@daily', '-n', '0'], /^belfry: option .* It must be a whole number from 1 to 10000\./],
    [['next', '@daily', '--nope'], /^belfry: unknown option '--nope'/],
  ])('reports each mistake in the same form, and exits with 2: %s', async (args, message) => {
    const { code, stdout, stderr } = await belfry(...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
  })

  it('prints at most 80 columns, and plain text when the output is not a terminal', async () => {
    for (const args of [
      ['--help'],
      ['next', '--help'],
      ['dev', '--help'],
      ['migrate', '--help'],
      ['serve', '--help'],
      ['token', '--help'],
      ['token', 'create', '--help'],
      ['next', '0 9 * * 1-5', '--tz', 'America/New_York'],
    ]) {
      const { stdout } = await belfry(...args)
      expect(stdout).not.toContain('\u001b')
      for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    }
  })
})

describe('belfry', () => {
  it('suggests the closest command, and exits with 2', async () => {
    const { code, stderr } = await belfry('nxt')
    expect(code).toBe(2)
    expect(stderr).toContain('Did you mean next?')
  })

  it('prints help with examples and exits with 0', async () => {
    const { code, stdout } = await belfry('next', '--help')
    expect(code).toBe(0)
    expect(stdout).toContain('Examples:')
  })
})

/** Runs the demo, from its start to Ctrl-C. */
class Demo {
  output = ''
  firstTickMs = 0
  readonly #child: ChildProcess

  constructor(...args: string[]) {
    const startedAt = performance.now()
    const child = spawn(process.execPath, [MAIN, 'dev', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.output += text
      if (this.firstTickMs === 0 && this.output.includes('✔')) this.firstTickMs = performance.now() - startedAt
    })
    this.#child = child
  }

  async shows(what: RegExp): Promise<void> {
    await expect.poll(() => this.output, { timeout: 20_000, interval: 20 }).toMatch(what)
  }

  async interrupt(): Promise<unknown> {
    return this.#end('SIGINT')
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async #end(signal: 'SIGINT' | 'SIGKILL'): Promise<unknown> {
    const exited = once(this.#child, 'exit')
    this.#child.kill(signal)
    const [code] = await exited
    return code
  }

  /** The folders that the demo keeps in the temporary directory. */
  get folders(): string[] {
    return readdirSync(tmpdir()).filter((name) => name.startsWith(`belfry-dev-${this.#child.pid}-`))
  }
}

/** Measures how long to wait: 1.5 s on an idle machine, longer on one that starts processes slowly. */
async function patienceMs(): Promise<number> {
  const startedAt = performance.now()
  for (let at = 0; at < 3; at += 1) await promisify(execFile)(process.execPath, ['-e', '0'])
  return 1_000 + ((performance.now() - startedAt) / 3) * 10
}

describe('belfry dev', () => {
  it('shows a tick at once, a failure with its retry, and leaves nothing behind', async () => {
    const patience = await patienceMs()
    const demo = new Demo()
    await demo.shows(/✔/)
    expect(demo.firstTickMs).toBeLessThan(patience)
    await demo.shows(/curl -X POST http/)
    await demo.shows(/API +GET \/v1\/schedules\/hello → 200 in/)
    // The curl commands that the demo prints work unchanged, and their effects appear beside the ticks.
    for (const [, line = ''] of demo.output.matchAll(/curl (.*)\n/g)) {
      const { status, text } = await curl(line.split(' ').at(-1) ?? '', ...line.split(' ').slice(0, -1))
      expect(`${status} ${text}`).toMatch(/^20\d .*hello/)
    }
    await demo.shows(/API +POST \/v1\/schedules\/hello\/trigger → 202 in/)
    await demo.shows(/flaky .*✔ done/)
    expect(demo.output).toMatch(/hello .*✔ done/)
    expect(demo.output).toMatch(/flaky .*↻ failed: out of paper/)
    expect(await demo.interrupt()).toBe(0)
    expect(demo.output).toMatch(/stopped\n$/)
    expect(demo.folders).toEqual([])
  })

  // Tried twice, because a busy machine can miss the time limit for the first tick.
  it('--replicas 3 shows a tick at once, shares ticks between three processes, and leaves nothing behind', {
    retry: 1,
  }, async () => {
    const patience = await patienceMs()
    const demo = new Demo('--replicas', '3')
    await demo.shows(/✔/)
    expect(demo.firstTickMs).toBeLessThan(patience)
    await demo.shows(/heartbeat(.|\n)*heartbeat(.|\n)*heartbeat/)
    await demo.shows(/API {2}http/)
    const ticks = [...demo.output.matchAll(/heartbeat +(\d\d:\d\d:\d\d) +✔/g)].map(([, tick]) => tick)
    expect(new Set(ticks).size).toBe(ticks.length)
    expect(await demo.interrupt()).toBe(0)
    expect(demo.output).toMatch(/stopped\n$/)
    expect(demo.folders).toEqual([])
  })

  it('removes the files of a killed demo', async () => {
    const killed = new Demo()
    await killed.shows(/✔/)
    await killed.kill()
    expect(killed.folders).toHaveLength(1)
    const next = new Demo()
    await next.shows(/Belfry/)
    await next.interrupt()
    expect(killed.folders).toEqual([])
  })

  it('refuses an invalid number of replicas', async () => {
    const { code, stderr } = await belfry('dev', '--replicas', 'many')
    expect(code).toBe(2)
    expect(stderr).toMatch(/^belfry: option '--replicas <count>' argument 'many' is invalid/)
  })
})
