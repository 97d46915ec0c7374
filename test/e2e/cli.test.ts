import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

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
  it('prints upcoming ticks in human form', async () => {
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

  it('says what is wrong with an expression, on stderr, and exits with 2', async () => {
    const { code, stdout, stderr } = await belfry('next', '0 25 * * *')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe('belfry: field 2 (hour): 25 is out of range 0–23 (at character 3)\n')
  })
})

describe('belfry', () => {
  it('suggests what was meant, and exits with 2', async () => {
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

describe('belfry dev', () => {
  it('shows ticks at once, a failure with its retry, and leaves nothing behind', async () => {
    const before = folders()
    const startedAt = performance.now()
    const child = spawn(process.execPath, [MAIN, 'dev'], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    let firstTickMs = 0
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (firstTickMs === 0 && output.includes('✔')) firstTickMs = performance.now() - startedAt
    })
    await expect.poll(() => output, { timeout: 20_000, interval: 50 }).toMatch(/flaky .*✔ done/)
    expect(output).toMatch(/flaky .*↻ failed: out of paper/)
    expect(firstTickMs).toBeLessThan(3_000)
    child.kill('SIGINT')
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
    expect(folders()).toEqual(before)
  })
})

function folders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('belfry-dev-'))
}
