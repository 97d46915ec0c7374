/** Webhooks in the format CloudEvents, read by the SDK of CloudEvents as a receiver would. */
import { CloudEvent, HTTP, type Message } from 'cloudevents'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { SinkMessage } from '../../src/core/sink.js'
import { type WebhookOptions, webhook } from '../../src/sinks/webhook/index.js'
import { scene } from './deliveries.js'
import { TestReceiver } from './receiver.js'

const ID = 'größe/1 "100%"'

let receiver: TestReceiver
const ends: (() => unknown)[] = []
beforeAll(async () => {
  receiver = await new TestReceiver().start()
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})
afterAll(() => receiver.stop())

/** Sends an event, and returns what the SDK makes of the request. */
async function received(
  options: Partial<WebhookOptions>,
  over: Partial<SinkMessage> = {},
): Promise<CloudEvent<unknown>> {
  const sink = webhook({ url: receiver.url, allow: ['127.0.0.1'], format: 'cloudevents', ...options })
  ends.push(() => sink.close?.())
  const message = scene.message({
    id: `${ID}-1767225600`,
    schedule_id: ID,
    payload: { grüße: ['ä', '日本', '🦀'] },
    ...over,
  })
  expect(await sink.deliver([message], AbortSignal.timeout(10_000))).toEqual([{ delivered: true }])
  const { headers, body } = receiver.last
  const request: Message = { headers: { ...headers }, body }
  expect(HTTP.isEvent(request)).toBe(true)
  const event = HTTP.toEvent(request)
  if (!(event instanceof CloudEvent)) throw new Error('the SDK found no event')
  event.validate()
  return event
}

it('the SDK reads a structured event, whose content type names its character set', async () => {
  const event = await received({ source: 'https://shop.example/gr%C3%B6%C3%9Fe', type: 'shop.digest' })
  expect(receiver.last.headers['content-type']).toBe('application/cloudevents+json; charset=utf-8')
  expect(event.toJSON()).toMatchObject({
    ...{ specversion: '1.0', id: `${ID}-1767225600`, subject: ID, type: 'shop.digest' },
    ...{ source: 'https://shop.example/gr%C3%B6%C3%9Fe', datacontenttype: 'application/json' },
    ...{ data: { grüße: ['ä', '日本', '🦀'] }, belfryattempt: 1 },
  })
})

// The SDK itself loses null, 0, false and empty text.
it.each([true, 1, 'text', [1, 2], { a: null }, { deep: { er: ['ä'] } }])(
  'the SDK finds the payload of a structured event: %j',
  async (payload) => {
    expect((await received({}, { payload })).data).toEqual(payload)
  },
)

it('the SDK reads a binary event', async () => {
  const event = await received({ mode: 'binary' }, { schedule_id: 'digest/eu', id: 'digest/eu-1' })
  expect(event.toJSON()).toMatchObject({
    ...{ specversion: '1.0', id: 'digest/eu-1', source: '/belfry', type: 'belfry.tick', subject: 'digest/eu' },
    ...{ datacontenttype: 'application/json', data: { grüße: ['ä', '日本', '🦀'] } },
  })
})

it('a source that the SDK would refuse is refused by the sink', () => {
  for (const source of ['größe', 'a b', 'a<b>']) {
    expect(() => webhook({ url: 'http://shop.example', format: 'cloudevents', source })).toThrow('URI reference')
  }
})
