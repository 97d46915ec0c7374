import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, expect, it } from 'vitest'

const PROGRAM = fileURLToPath(new URL('../../examples/cpu-bound/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'belfry-cpu-bound-'))

const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function start(args: readonly string[]) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  const lines: string[] = []
  child.stdout.setEncoding('utf8').on('data', (text: string) => lines.push(...text.trim().split('\n')))
  return { child, lines, exit: once(child, 'exit') }
}

it('the CPU-bound example computes in a worker thread of the built package, and stops on SIGTERM', async () => {
  const { child, lines, exit } = start([PROGRAM, join(folder, 'example.db')])
  await expect.poll(() => lines, { timeout: 20_000, interval: 50 }).toContain('there are 41538 primes')
  expect(lines).toContain('the main thread is free')
  child.kill('SIGTERM')
  expect(await exit).toEqual([null, 'SIGTERM'])
})

/** Starts a program on the built package, with its source passed as text. */
function startText(text: string) {
  const modules = ['index', 'stores/memory/index'].map((name) => new URL(`../../dist/${name}.js`, import.meta.url))
  const handler = new URL('../../examples/cpu-bound/count-primes.js', import.meta.url)
  const program = `
    const [{ createBelfry }, { memory }] = await Promise.all(${JSON.stringify(modules)}.map((url) => import(url)))
    const belfry = createBelfry({ store: memory(), threads: { idle: '10m' } })
    const job = belfry.job('count-primes', { run: new URL('${handler.href}') })
    ${text}
  `
  return start(['--input-type=module', '--eval', program])
}

it('threads work in a program that Node received as text, and end with their instance', async () => {
  const { lines, exit } = startText(`
    await belfry.start()
    const { run } = await job.enqueue({ below: 10 })
    console.log((await belfry.runs.wait(run)).result)
    await belfry.stop()
  `)
  expect(await exit).toEqual([0, null])
  expect(lines).toEqual(['4'])
})

it('an idle thread does not keep the process alive', async () => {
  const { lines, exit } = startText(`
    belfry.schedule('primes', { every: 'x', job })
    await belfry.start().catch(({ code }) => console.log(code))
  `)
  expect(await exit).toEqual([0, null])
  expect(lines).toEqual(['DURATION_SYNTAX'])
})
