import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'

const PROGRAM = fileURLToPath(new URL('../../examples/in-app/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'belfry-in-app-'))
const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

it('two processes of the in-app example run each tick once, and stop on SIGTERM', async () => {
  const lines: string[] = []
  for (let count = 0; count < 2; count += 1) {
    const child = spawn(process.execPath, [PROGRAM, join(folder, 'belfry.db')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    child.stdout.setEncoding('utf8').on('data', (text: string) => lines.push(...text.trim().split('\n')))
    children.push(child)
  }
  await expect.poll(() => lines.length, { timeout: 20_000, interval: 50 }).toBeGreaterThanOrEqual(5)
  const exits = children.map((child) => once(child, 'exit'))
  for (const child of children) child.kill('SIGTERM')
  const ends = await Promise.all(exits)
  expect(ends.map(([, signal]) => signal)).toEqual(['SIGTERM', 'SIGTERM'])
  const ticks = lines.map((line) => line.split(' ')[0])
  expect(new Set(ticks).size).toBe(ticks.length)
})
