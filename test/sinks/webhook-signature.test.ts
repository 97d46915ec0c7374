/** Signatures for receivers that schedules name: none of them can sign for another. */
import { createHmac, createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SinkMessage } from '../../src/core/sink.js'
import { receiverSecret, type WebhookOptions, webhook } from '../../src/sinks/webhook/index.js'
import { TestReceiver } from './receiver.js'

const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const message: SinkMessage = {
  ...{ id: 'a/1-1767225600', generated_at: '2026-01-01T00:00:00.000Z', schedule_id: 'a/1', payload: null },
  ...{ dedupeId: 'store/one', key: 'a/1', attempt: 1, token: 1, startedAt: Date.UTC(2026, 0, 1) },
}

let one: TestReceiver
let other: TestReceiver

beforeAll(async () => {
  one = await new TestReceiver().start()
  other = await new TestReceiver().start()
})
afterAll(async () => {
  await one.stop()
  await other.stop()
})

async function send(options: Partial<WebhookOptions>, url?: string): Promise<void> {
  const sink = webhook({ allow: ['127.0.0.1'], ...options })
  const over = url === undefined ? {} : { options: { url } }
  expect(await sink.deliver([{ ...message, ...over }], AbortSignal.timeout(10_000))).toEqual([{ delivered: true }])
  await sink.close?.()
}

function content({ last: { headers, body } }: TestReceiver): string {
  return `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
}

function signed(secret: string, receiver: TestReceiver): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  return `v1,${createHmac('sha256', key).update(content(receiver)).digest('base64')}`
}

describe('a webhook without a url', () => {
  it('signs with a secret for each origin, from which no other can be computed', async () => {
    await send({ secrets: [SECRET] }, one.url)
    await send({ secrets: [SECRET] }, other.url)
    const [first, second] = [receiverSecret(SECRET, one.url), receiverSecret(SECRET, other.url)]
    expect(new Set([SECRET, first, second]).size).toBe(3)
    expect(first).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(one.last.headers['webhook-signature']).toBe(signed(first, one))
    expect(other.last.headers['webhook-signature']).toBe(signed(second, other))
    expect(receiverSecret(SECRET, `${new URL(one.url).origin}/elsewhere?x=1`)).toBe(first)
  })

  it('signs by Ed25519, which receivers can only verify', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
    const spki = publicKey.export({ format: 'der', type: 'spki' })
    for (const bytes of [seed, Buffer.concat([seed, spki.subarray(-32)])]) {
      const secret = `whsk_${bytes.toString('base64')}`
      await send({ secrets: [secret, SECRET] }, one.url)
      const [asymmetric = '', symmetric] = String(one.last.headers['webhook-signature']).split(' ')
      expect(asymmetric).toMatch(/^v1a,/)
      expect(symmetric).toBe(signed(receiverSecret(SECRET, one.url), one))
      const told = receiverSecret(secret, one.url)
      expect(told).toBe(`whpk_${spki.subarray(-32).toString('base64')}`)
      const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
      expect(verify(null, Buffer.from(content(one)), key, Buffer.from(asymmetric.slice(4), 'base64'))).toBe(true)
    }
  })
})

describe('a webhook with a url', () => {
  it('uses its own secret there and below, and another for any other receiver', async () => {
    const own = { url: `${one.url}/hooks`, secrets: [SECRET], overrides: { url: true } }
    await send(own)
    expect(one.last.headers['webhook-signature']).toBe(signed(SECRET, one))
    await send(own, `${one.url}/hooks/below`)
    expect(one.last.headers['webhook-signature']).toBe(signed(SECRET, one))
    for (const path of ['/', '/hooks2', '/hooks/../x', '/hooks/%2e%2e/x', '/hooks/..%2fx', '/hooks/..;/x']) {
      await send(own, `${one.url}${path}`)
      expect(one.last.headers['webhook-signature']).toBe(signed(receiverSecret(SECRET, one.url), one))
    }
    await send(own, other.url)
    expect(other.last.headers['webhook-signature']).toBe(signed(receiverSecret(SECRET, other.url), other))
  })
})

describe('a secret', () => {
  const key = Buffer.alloc(64, 7).toString('base64')
  it.each([
    ['an Ed25519 key that is too short', `whsk_${Buffer.alloc(31, 7).toString('base64')}`],
    ['an Ed25519 key with another public key', `whsk_${key}`],
    ['no base64', 'whsk_!'],
    ['a public key', `whpk_${Buffer.alloc(32, 7).toString('base64')}`],
  ])('is refused without being shown: %s', (_, secret) => {
    const refused = expect.objectContaining({ code: 'OPTION_INVALID', message: expect.not.stringContaining(secret) })
    expect(() => webhook({ secrets: [secret] })).toThrow(refused)
  })

  it.each(['shop.example', 'ftp://shop.example', ''])('is derived for URLs alone, not for %j', (url) => {
    expect(() => receiverSecret(SECRET, url)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })
})
