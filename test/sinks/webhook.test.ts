import { createHmac } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Delivery, SinkMessage, Undelivered } from '../../src/core/sink.js'
import { type WebhookOptions, webhook } from '../../src/sinks/webhook/index.js'
import { warningsDuring } from '../warnings-during.js'
import { TestReceiver } from './receiver.js'

const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const NEW_SECRET = `whsec_${Buffer.alloc(32, 2).toString('base64')}`
const STARTED_AT = Date.UTC(2026, 5, 1, 12, 0, 0, 900)
const message: SinkMessage = {
  ...{ id: 'größe/1-1767225600', generated_at: '2026-01-01T00:00:00.000Z', schedule_id: 'größe/1' },
  ...{
    payload: { a: 1 },
    dedupeId: 'store/one',
    key: 'größe/1',
    attempt: 2,
    token: 1_767_225_600_000_000,
    startedAt: STARTED_AT,
  },
}

let receiver: TestReceiver
const open: { close?(): Promise<void> }[] = []

beforeAll(async () => {
  receiver = await new TestReceiver().start()
})
afterEach(async () => {
  receiver.accept()
  for (const sink of open.splice(0)) await sink.close?.()
})
afterAll(() => receiver.stop())

function hook(options: Partial<WebhookOptions> = {}) {
  const sink = webhook({ url: receiver.url, allow: ['127.0.0.1'], ...options })
  open.push(sink)
  const send = async (over: Partial<SinkMessage> = {}, signal = AbortSignal.timeout(10_000)): Promise<Delivery> => {
    const [outcome] = await sink.deliver([{ ...message, ...over }], signal)
    return outcome as Delivery
  }
  return { sink, send }
}

describe('a webhook', () => {
  it('sends the four fields, and the number of the attempt', async () => {
    const { send } = hook()
    expect(await send()).toEqual({ delivered: true })
    const { body, headers } = receiver.last
    expect(body).toBe(
      '{"id":"größe/1-1767225600","generated_at":"2026-01-01T00:00:00.000Z","schedule_id":"größe/1","payload":{"a":1}}',
    )
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': 'gr%C3%B6%C3%9Fe/1-1767225600',
      'belfry-attempt': '2',
      'belfry-token': '1767225600000000',
    })
    expect(headers['webhook-signature']).toBeUndefined()
  })

  it('is signed as Standard Webhooks specifies, with every secret, at the store’s time', async () => {
    const { send } = hook({ secrets: [SECRET, NEW_SECRET] })
    await send()
    const { body, headers } = receiver.last
    expect(headers['webhook-timestamp']).toBe(String(Math.floor(STARTED_AT / 1_000)))
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    const expected = [1, 2].map((fill) => {
      const mac = createHmac('sha256', Buffer.alloc(32, fill)).update(signed).digest('base64')
      return `v1,${mac}`
    })
    expect(headers['webhook-signature']).toBe(expected.join(' '))
  })

  it.each(['', 'secret', 'whsec_', 'whsec_short', 'whsec_!!!not-base64-but-long-enough-to-be-one!!!'])(
    'refuses the secret %j without showing it',
    (secret) => {
      let thrown: Error | undefined
      try {
        webhook({ url: 'https://example.com', secrets: [secret] })
      } catch (error) {
        thrown = error as Error
      }
      expect(thrown).toMatchObject({ code: 'OPTION_INVALID' })
      if (secret.length > 6) expect(thrown?.message).not.toContain(secret)
    },
  )

  it('is a CloudEvent on request, as one document or with its attributes as headers', async () => {
    await hook({ format: 'cloudevents', source: 'https://shop.example' }).send()
    expect(receiver.last.headers['content-type']).toBe('application/cloudevents+json; charset=utf-8')
    expect(JSON.parse(receiver.last.body)).toEqual({
      ...{ specversion: '1.0', id: message.id, source: 'https://shop.example', type: 'belfry.tick' },
      ...{ time: message.generated_at, subject: 'größe/1', datacontenttype: 'application/json', data: { a: 1 } },
      ...{ belfryattempt: 2, belfrytoken: '1767225600000000' },
    })
    await hook({ format: 'cloudevents', mode: 'binary' }).send()
    expect(receiver.last.body).toBe('{"a":1}')
    expect(receiver.last.headers).toMatchObject({
      ...{ 'content-type': 'application/json', 'ce-specversion': '1.0', 'ce-source': '/belfry' },
      ...{ 'ce-id': 'gr%C3%B6%C3%9Fe/1-1767225600', 'ce-subject': 'gr%C3%B6%C3%9Fe/1', 'ce-type': 'belfry.tick' },
      ...{ 'ce-time': message.generated_at, 'ce-belfryattempt': '2', 'ce-belfrytoken': '1767225600000000' },
    })
  })

  it.each([
    [{ format: 'xml' }, /format/],
    [{ mode: 'binary' }, /has no effect without/],
    [{ format: 'cloudevents', mode: 'both' }, /mode/],
    [{ format: 'cloudevents', source: '' }, /source/],
    [{ url: 'https://u:p@example.com' }, /user name or a password/],
    [{ secret: 'x' }, /secrets/],
    [{ headers: { 'webhook-id': 'x' } }, /is reserved/],
    [{ allow: '127.0.0.1' }, /must be a list/],
    [{ url: undefined, headers: { 'X-Auth-Token': 'x' } }, /any URL that a schedule names/],
    [{ url: 'hooks.example/in/SECRET' }, /^(?!.*SECRET).*must be an http or https URL/],
  ])('refuses the options %j', (options, reason) => {
    expect(() => webhook({ url: 'https://example.com', ...options } as WebhookOptions)).toThrow(reason)
  })

  it('sends many messages at once, and Node.js takes their listeners for no leak', async () => {
    const { sink } = hook()
    const many = Array.from({ length: 20 }, (_, at) => ({ ...message, id: `many-${at}`, key: `many-${at}` }))
    const warnings = await warningsDuring(() => sink.deliver(many, AbortSignal.timeout(10_000)))
    expect(warnings).toEqual([])
  })

  it('reuses a connection, and opens a new one if it was closed meanwhile', async () => {
    const { send } = hook()
    for (let count = 0; count < 5; count += 1) expect(await send()).toEqual({ delivered: true })
    const connections = new Set(receiver.requests.slice(-5).map(({ connection }) => connection))
    expect(connections.size).toBe(1)
    receiver.reply = ({ connection }, response) => {
      if (connections.has(connection)) response.socket?.destroy()
      else response.writeHead(200).end()
    }
    expect(await send()).toEqual({ delivered: true })
  })

  it.each([300, 301, 400, 401, 404, 429, 500, 503])('that is answered with %i is retried', async (status) => {
    receiver.answer(status, 'no, \u0000 not\nnow', { location: '/elsewhere' })
    const outcome = (await hook().send()) as Undelivered
    expect(outcome).toMatchObject({ delivered: false, error: { code: 'SINK_REFUSED', excerpt: 'no, not now' } })
    expect(outcome.retryable).toBeUndefined()
    expect(outcome.pauseSchedule).toBeUndefined()
    expect(String(outcome.error)).toContain(`127.0.0.1:${receiver.port} answered with ${status}`)
    expect(String(outcome.error)).not.toContain('/hook')
  })

  it('that is answered with 410 is never sent again, and its schedule is to be paused', async () => {
    receiver.answer(410)
    expect(await hook().send()).toMatchObject({ delivered: false, retryable: false, pauseSchedule: /410/ })
  })

  it.each([
    ['7', 7_000],
    ['99999999999999999999', 1e12],
    ['Mon, 01 Jun 2026 12:01:00 GMT', 60_000],
    ['soon', undefined],
    ['-5', undefined],
  ])('that gets Retry-After %j is retried at that time', async (retryAfter, retryAfterMs) => {
    receiver.answer(503, '', { 'retry-after': retryAfter, date: 'Mon, 01 Jun 2026 12:00:00 GMT' })
    expect(((await hook().send()) as Undelivered).retryAfterMs).toBe(retryAfterMs)
  })

  it('stores only an excerpt of a long answer, and nothing of an unreadable one', async () => {
    receiver.answer(500, 'x'.repeat(1_000_000))
    const { error } = (await hook().send()) as Undelivered
    expect((error as { excerpt: string }).excerpt).toHaveLength(256)
    receiver.answer(500, 'packed', { 'content-encoding': 'gzip' })
    expect((await hook().send()) as Undelivered).not.toHaveProperty('error.excerpt')
  })

  it('without an answer ends with its signal; with an answer it counts, however slow the body is', async () => {
    receiver.reply = () => {}
    const silent = await hook().send({}, AbortSignal.timeout(50))
    expect(silent).toMatchObject({ delivered: false, error: { name: 'TimeoutError' } })
    expect(silent).not.toHaveProperty('unreachable')
    receiver.reply = (_, response) => void response.writeHead(200).write('and so on')
    expect(await hook().send({}, AbortSignal.timeout(100))).toEqual({ delivered: true })
  })

  it('without an answer several times in a row reports the receiver as unreachable, until it answers', async () => {
    receiver.reply = ({ body }, response) => {
      if (body.includes('answer me')) response.writeHead(500).end()
    }
    const { send } = hook()
    const silence = () => send({}, AbortSignal.timeout(20))
    for (let count = 0; count < 2; count += 1) expect(await silence()).not.toHaveProperty('unreachable')
    for (let count = 0; count < 2; count += 1) expect(await silence()).toMatchObject({ unreachable: true })
    expect(await send({ payload: 'answer me' })).not.toHaveProperty('unreachable')
    expect(await silence()).not.toHaveProperty('unreachable')
  })

  it('that cannot be sent blames the sink or the message, whichever is at fault', async () => {
    const gone = await new TestReceiver().start()
    const { url } = gone
    await gone.stop()
    expect(await hook({ url }).send()).toMatchObject({ unreachable: true, error: { code: 'SINK_UNREACHABLE' } })
    const outcome = await hook({ overrides: { url: true } }).send({ options: { url } })
    expect(outcome).toMatchObject({ delivered: false, error: { code: 'SINK_UNREACHABLE' } })
    expect(outcome).not.toHaveProperty('unreachable')
  })

  it('of a sink without a URL uses its schedule’s URL, and fails without one', async () => {
    const overrides = { headers: ['x-to'] }
    const sink = webhook({ allow: ['127.0.0.1'], headers: { 'x-from': 'us' }, overrides })
    open.push(sink)
    expect(() => sink.check?.({})).toThrow(/toOptions.url/)
    const options = { url: `${receiver.url}?own=1`, headers: { 'X-To': 'them' } }
    sink.check?.(options)
    await sink.deliver([{ ...message, options }], AbortSignal.timeout(5_000))
    expect(receiver.last).toMatchObject({ url: '/hook?own=1', headers: { 'x-from': 'us', 'x-to': 'them' } })
  })
})
