/** Commands on many schedules or runs are operations of the service, which any process can cancel. */
import { spawn } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import { HttpListener } from '../../src/cli/serve/http-listener.js'
import { createClient } from '../../src/client/index.js'
import { type Belfry, silentLogger } from '../../src/index.js'
import { createServer } from '../../src/server/index.js'
import { cleanEnv, MAIN } from '../e2e/service.js'
import { type CliSetup, cliSetup, type Kind, belfry as runBelfry } from './cli-setup.js'

const SCHEDULES = 1_000
/** Schedules that are paused before the operation waits for its cancellation. */
const AT_ONCE = 300

let setup: CliSetup
const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  await setup.close()
})

/** An instance with many schedules, and a service in this process whose operations wait in the middle until they are cancelled. */
async function slowService(kind: Kind) {
  setup = await cliSetup(kind)
  const belfry = await setup.instance()
  const ids = Array.from({ length: SCHEDULES }, (_, at) => `many/${at}`)
  await belfry.schedules.putMany(ids.map((id) => [id, { every: '1d', job: 'greet' }]))
  const pause = belfry.schedules.pause.bind(belfry.schedules)
  const isNoticed = cancellationNoticed(belfry)
  let paused = 0
  belfry.schedules.pause = async (id, note) => {
    paused += 1
    if (paused > AT_ONCE) await isNoticed
    return pause(id, note)
  }
  const server = createServer(belfry, { logger: silentLogger })
  const addressOf = () => ({ remoteAddress: '127.0.0.1', secure: false })
  const listener = new HttpListener({ fetch: server.fetch, addressOf })
  const { port } = await listener.listen('127.0.0.1', 0)
  ends.push(() => server.close())
  ends.push(() => listener.close(0))
  return { belfry, url: `http://127.0.0.1:${port}`, halfway: () => paused > AT_ONCE }
}

/** Resolves when the service of this instance has read that an operation is to be cancelled. */
function cancellationNoticed({ records }: Belfry): Promise<void> {
  const get = records.get.bind(records)
  return new Promise((resolve) => {
    records.get = async (kind, id) => {
      const found = await get(kind, id)
      if (kind === 'operation-cancel' && found !== undefined) resolve()
      return found
    }
  })
}

async function activeCount(belfry: Belfry): Promise<number> {
  return (await belfry.schedules.list({ state: 'active', limit: SCHEDULES })).items.length
}

it('Ctrl-C cancels the operation, and says how far it came', { timeout: 180_000 }, async () => {
  const { belfry, url, halfway } = await slowService('sqlite')
  const child = spawn(process.execPath, [MAIN, 'pause', '--prefix', 'many/', '--url', url], { env: cleanEnv({}) })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  await expect.poll(halfway, { timeout: 60_000 }).toBe(true)
  child.kill('SIGINT')
  expect(await ended).toBe(130)
  expect(said).toMatch(/^operation [0-9a-f-]{36} cancelled: \d+ changed\nbelfry: interrupted\n$/)
  expect(await activeCount(belfry)).toBeGreaterThan(0)
  expect(await runBelfry(['pause', '--prefix', 'many/', '--url', url])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+ paused\n$/),
  })
  expect(await activeCount(belfry)).toBe(0)
})

describe.each(['postgres', 'redis'] as const)('on %s', (kind) => {
  it('an operation is cancelled through another process', { timeout: 180_000 }, async () => {
    const { belfry, url, halfway } = await slowService(kind)
    const here = createClient({ url }).operations
    const there = createClient({ url: (await setup.service()).url }).operations
    const { id } = await here.start({ kind: 'pause-schedules', prefix: 'many/' })
    await expect.poll(halfway, { timeout: 60_000 }).toBe(true)
    expect(await there.get(id)).toMatchObject({ state: 'running' })
    await there.cancel(id)
    expect(await there.wait(id)).toMatchObject({ state: 'cancelled' })
    expect(await here.get(id)).toMatchObject({ state: 'cancelled' })
    expect(await activeCount(belfry)).toBeGreaterThan(0)
  })
})
