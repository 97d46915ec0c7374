import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configFile } from '../../src/cli/settings/config-file.js'
import { openSinks } from '../../src/cli/settings/open-sinks.js'
import { serveSettings } from '../../src/cli/settings/serve-settings.js'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const YAML = `
port: 0
sinks:
  orders:
    type: webhook
    url: https://shop.example/hooks
    secrets: [{ env: ORDERS_SECRET }]
    headers: { authorization: { env: ORDERS_AUTH } }
    batch: 1
    retry: { attempts: 5, delay: 2s }
    overrides: { headers: [x-tenant], url: [https://shop.example/tenants] }
  seen: { type: log }
`
const ENV = { ORDERS_SECRET: SECRET, ORDERS_AUTH: 'Bearer x' }

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'belfry-config-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text)
}

describe('the config file', () => {
  const module = `export default { port: 0, sinks: { mine: { deliver: async (messages) => messages.map(() => ({ delivered: true })) } } }`

  it.each([
    ['belfry.config.yaml', YAML, ['orders', 'seen']],
    ['belfry.config.yml', YAML, ['orders', 'seen']],
    ['belfry.config.json', '{ "port": 0, "sinks": { "seen": { "type": "log" } } }', ['seen']],
    ['belfry.config.mjs', module, ['mine']],
    ['belfry.config.js', module, ['mine']],
  ])('is found in the working directory as %s', async (name, text, names) => {
    write('package.json', '{ "type": "module" }')
    write(name, text)
    const file = await configFile({}, {}, 'own', folder)
    expect(file?.path).toBe(name)
    const { sinks, port } = serveSettings({ flags: {}, env: {}, file })
    expect(port).toBe(0)
    const opened = await openSinks(sinks, ENV)
    expect(Object.keys(opened)).toEqual(names)
    for (const sink of Object.values(opened)) expect(typeof sink.deliver).toBe('function')
  })

  it('that is named on the command line is used; two files in the directory are refused', async () => {
    write('belfry.config.json', '{ "port": 1 }')
    write('other.json', '{ "port": 2 }')
    expect(await configFile({ config: 'other.json' }, {}, 'own', folder)).toMatchObject({ values: { port: 2 } })
    expect(await configFile({}, { BELFRY_CONFIG: join(folder, 'other.json') }, 'own', folder)).toMatchObject({
      values: { port: 2 },
    })
    write('belfry.config.yaml', 'port: 3')
    await expect(configFile({}, {}, 'own', folder)).rejects.toThrow(
      /belfry.config.json and belfry.config.yaml: keep one/,
    )
    rmSync(join(folder, 'belfry.config.json'))
    rmSync(join(folder, 'belfry.config.yaml'))
    expect(await configFile({}, {}, 'own', folder)).toBeUndefined()
  })

  it.each([
    ['belfry.config.json', '[]', /options must be an object/],
    ['belfry.config.yaml', 'a: [', /belfry.config.yaml" cannot be read/],
    ['belfry.config.mjs', 'export const port = 1', /an object, exported as default/],
    ['belfry.config.mjs', 'throw new Error("oh")', /cannot be read: oh/],
  ])('%s that holds %s is refused', async (name, text, reason) => {
    write(name, text)
    await expect(configFile({}, {}, 'own', folder)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(configFile({}, {}, 'own', folder)).rejects.toThrow(reason)
  })
})

describe('a sink in the config file', () => {
  it('may be any of the built-in kinds', async () => {
    const sasl = { mechanism: 'plain', username: 'belfry', password: { env: 'ORDERS_AUTH' } }
    const config = {
      events: { type: 'kafka', topic: 'events', brokers: ['127.0.0.1:9092'], ssl: true, sasl },
      jet: { type: 'nats', subject: 'events.belfry', servers: 'nats://127.0.0.1' },
      rabbit: { type: 'rabbitmq', url: { env: 'RABBIT' }, queue: 'events' },
      stream: { type: 'redis-stream', url: 'redis://127.0.0.1', stream: 'events', dedupe: '1m' },
    }
    const opened = await openSinks(config, { ...ENV, RABBIT: 'amqp://user:hunter2@127.0.0.1' })
    expect(Object.keys(opened)).toEqual(['events', 'jet', 'rabbit', 'stream'])
    const open = {
      type: 'nats',
      subject: 'a',
      servers: 'nats://127.0.0.1',
      client: { user: 'belfry', pass: 'hunter2' },
    }
    await expect(openSinks({ open }, ENV)).rejects.toThrow(/client\.pass is a secret in the file/)
  })

  const url = 'https://shop.example/hooks'
  it.each([
    [
      'without a type',
      { url },
      /sinks\.orders: type is "undefined"; allowed are kafka, log, nats, rabbitmq, redis-stream, webhook/,
    ],
    ['of a type that is none', { type: 'fax' }, /type is "fax"/],
    ['that is a text', 'webhook', /must be an object with a type/],
    [
      'with an option that is none',
      { type: 'webhook', uri: url },
      /sinks\.orders: .*"uri" is not an option; did you mean "url"/,
    ],
    ['with a secret in the file', { type: 'webhook', url, secrets: [SECRET] }, /secrets\[0\] is a secret in the file/],
    [
      'with credentials in the file',
      { type: 'webhook', url, headers: { Authorization: 'Basic x' } },
      /headers\.Authorization is a secret/,
    ],
    ['with a password in a URL', { type: 'webhook', url: 'https://u:hunter2@shop.example' }, /url holds a password/],
    [
      'with a variable that is not set',
      { type: 'webhook', url, secrets: [{ env: 'NOPE' }] },
      /the environment has no NOPE/,
    ],
    ['with a variable that is none', { type: 'webhook', url: { env: 'A B' } }, /must be the name of a variable/],
    ['with a URL that is none', { type: 'webhook', url: 'shop.example' }, /url must be an http or https URL/],
    [
      'with a secret that is none',
      { type: 'webhook', url, secrets: [{ env: 'ORDERS_AUTH' }] },
      /secret 1 of 1 must be "whsec_"/,
    ],
  ])('%s is refused without showing a secret', async (_, sink, reason) => {
    const error = await openSinks({ orders: sink }, ENV).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'OPTION_INVALID', message: expect.stringMatching(reason) })
    for (const secret of [SECRET, ENV.ORDERS_AUTH, 'hunter2', 'Basic x']) expect(String(error)).not.toContain(secret)
  })
})
