import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { TestReceiver } from '../sinks/receiver.js'
import { cleanEnv, curl, jsonBody, MAIN, Service } from './service.js'

const SECRET = Buffer.alloc(32, 3)
const ENV = { HOOK_SECRET: `whsec_${SECRET.toString('base64')}` }

let folder = ''
let receiver: TestReceiver
let service: Service | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'belfry-sinks-'))
  receiver = await new TestReceiver().start()
  writeFileSync(
    join(folder, 'belfry.config.yaml'),
    `
store: ${join(folder, 'belfry.db')}
port: 0
sinks:
  orders:
    type: webhook
    url: ${receiver.url}
    secrets: [{ env: HOOK_SECRET }]
    allow: [127.0.0.1]
    retry: { delay: 50ms, maxDelay: 200ms }
`,
  )
})
afterEach(async () => {
  service?.kill('SIGKILL')
  await service?.exited()
})
afterAll(async () => {
  await receiver.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(): Promise<Service> {
  service = await Service.start(['--config', join(folder, 'belfry.config.yaml')], ENV)
  return service
}

interface Event {
  readonly id: string
  readonly generated_at: string
}

const events = () => receiver.requests.map(({ body }) => JSON.parse(body) as Event)
const distinct = () => [...new Set(events().map(({ id }) => id))]
const UNTIL = { timeout: 30_000, interval: 50 }

describe('belfry serve without any configuration', () => {
  it('has a log sink, so that the first request can make something happen', async () => {
    const store = `sqlite:${join(folder, 'first.db')}`
    service = await Service.start(['--store', store, '--port', '0'])
    const schedule = { every: '1s', to: 'log', payload: { hello: 'world' } }
    expect((await curl(`${service.url}/v1/schedules/first`, ...jsonBody('PUT', schedule))).status).toBe(201)
    await expect.poll(() => service?.output, UNTIL).toMatch(/"schedule_id":"first","payload":\{"hello":"world"\}/)
    const where = ['--url', service.url.replace('http://', '')]
    const event = ['enqueue', '--to', 'log', '--payload', '{"once":true}', '--wait', '30s', ...where]
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...event], { env: cleanEnv() })
    expect(stdout).toMatch(/^run \S+ {2}succeeded\nto +log\n/)
    expect(service.output).toMatch(/"payload":\{"once":true\}/)
  })
})

describe('belfry serve with a webhook', () => {
  it('delivers every tick, signed, with retries until it is accepted, and late rather than never', {
    timeout: 90_000,
  }, async () => {
    const { url } = await start()
    // The receiver refuses the first attempt of each event.
    const seen = new Set<string>()
    receiver.reply = ({ headers }, response) => {
      const id = String(headers['webhook-id'])
      response.writeHead(seen.has(id) ? 204 : 503).end()
      seen.add(id)
    }
    const body = { cron: '@every 1s', to: 'orders', payload: { user: 1 }, missed: 'all' }
    const made = await curl(`${url}/v1/schedules/bell`, ...jsonBody('PUT', body))
    expect(made.status).toBe(201)
    await expect.poll(() => distinct().length, UNTIL).toBeGreaterThanOrEqual(2)
    await expect.poll(() => events().length, UNTIL).toBeGreaterThanOrEqual(4)
    receiver.accept()
    // No service runs during some ticks. The next one delivers them.
    expect(await service?.stop()).toBe(0)
    const before = distinct().length
    const stoppedAt = Date.now()
    await expect.poll(() => Date.now(), UNTIL).toBeGreaterThan(stoppedAt + 1_500)
    const again = await start()
    await expect.poll(() => distinct().length, UNTIL).toBeGreaterThanOrEqual(before + 3)
    // Ticks are one second apart, and each event is the same in every attempt.
    const ticks = distinct()
      .map((id) => Number(id.slice('bell-'.length)))
      .sort((one, other) => one - other)
    expect(ticks).toEqual(ticks.map((_, at) => (ticks[0] ?? 0) + at))
    const bodies = new Map<string, Set<string>>()
    for (const request of receiver.requests) {
      const { id, generated_at } = JSON.parse(request.body) as Event
      expect(id).toBe(`bell-${Math.floor(Date.parse(generated_at) / 1_000)}`)
      bodies.set(id, (bodies.get(id) ?? new Set()).add(request.body))
      const signed = `${id}.${request.headers['webhook-timestamp']}.${request.body}`
      const mac = createHmac('sha256', SECRET).update(signed).digest('base64')
      expect(request.headers['webhook-signature']).toBe(`v1,${mac}`)
    }
    for (const same of bodies.values()) expect(same.size).toBe(1)
    const refused = await curl(`${again.url}/v1/schedules/odd`, ...jsonBody('PUT', { ...body, to: 'order' }))
    expect([refused.status, JSON.parse(refused.text).code]).toEqual([422, 'SINK_UNKNOWN'])
    expect(await service?.stop()).toBe(0)
    expect(service?.output).not.toContain(ENV.HOOK_SECRET)
  })

  it('with TypeScript settings says what to do when the runtime cannot read them', async () => {
    const path = join(folder, 'settings.mts')
    writeFileSync(path, 'const port: number = 70000\nexport default { port }')
    const failed = await promisify(execFile)(process.execPath, [MAIN, 'serve', '--config', path], {
      env: cleanEnv(),
    }).catch((error: { code: number; stderr: string }) => error)
    expect(failed).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/use 22\.18 or newer|port: "?70000"? is not/),
    })
  })
})
