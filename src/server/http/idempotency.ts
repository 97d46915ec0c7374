/**
 * Idempotency-Key: the same request with the same key happens once, and is answered the same again for a day.
 *
 * A record reserves the key before anything is done and holds the answer afterwards. While it is reserved, others are
 * asked to come again. A process that dies in between leaves a reservation that ends after two minutes; whoever then
 * repeats the request does it again, and what it makes carries names that are derived from the key (`uniqueName`), so
 * that the store itself knows it for the same.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Belfry } from '../../belfry.js'
import { canonicalJson, type Json } from '../../core/json.js'
import type { Caller } from '../security/caller.js'
import { problem } from './problem.js'
import type { Reply } from './reply.js'
import type { ServerContext } from './route.js'

const KIND = 'idempotency'
const PENDING_MS = 120_000
const DONE_MS = 24 * 3_600_000
/** For how long what a request made is known for the same. */
export const SAME_FOR = '1d'
const KEY = /^[\x21-\x7e]{1,255}$/

interface Reserved {
  readonly fingerprint: string
  readonly attempt?: string
  readonly answer?: Answered
}

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A name for what this request makes: the same whenever it is repeated. Undefined without a key. */
export function uniqueName(c: ServerContext): string | undefined {
  const key = c.req.header('idempotency-key')
  return key === undefined ? undefined : recordId(c, c.get('caller'), key)
}

export function hasKey(c: ServerContext): boolean {
  return c.req.header('idempotency-key') !== undefined
}

type Work = () => Promise<Reply> | Reply

export function once(belfry: Belfry, c: ServerContext, body: unknown, work: Work): Promise<Reply> | Reply {
  const key = c.req.header('idempotency-key')
  return key === undefined ? work() : onceFor(key, belfry, c, body, work)
}

async function onceFor(key: string, belfry: Belfry, c: ServerContext, body: unknown, work: Work): Promise<Reply> {
  if (!KEY.test(key)) {
    const message = 'use 1 to 255 printable ASCII characters, no spaces'
    throw problem(400, 'REQUEST_INVALID', `Idempotency-Key: ${message}`, {
      errors: [{ pointer: 'idempotency-key', message }],
    })
  }
  const id = recordId(c, c.get('caller'), key)
  const fingerprint = createHash('sha256')
    .update(canonicalJson((body ?? null) as Json))
    .digest('hex')
  const attempt = randomUUID()
  const { record } = await belfry.records.put({
    ...{ kind: KIND, id, ttlMs: PENDING_MS, ifAbsent: true },
    body: { fingerprint, attempt },
  })
  const found = record.body as unknown as Reserved
  if (found.attempt !== attempt) return answerAgain(found, fingerprint)
  let reply: Reply
  try {
    reply = await work()
  } catch (error) {
    // It did not happen, or nobody knows: it may be asked for again.
    await belfry.records.remove(KIND, id).catch(() => {})
    throw error
  }
  const { status, headers, body: text } = reply
  const answer = { status, headers, body: typeof text === 'string' ? text : '' }
  // It has happened, and is answered so: whoever repeats it later finds it by the names that it was given.
  await belfry.records.put({ kind: KIND, id, ttlMs: DONE_MS, body: { fingerprint, answer } }).catch(() => {})
  return reply
}

function answerAgain({ fingerprint, answer }: Reserved, own: string): Reply {
  if (fingerprint !== own) {
    throw problem(422, 'IDEMPOTENCY_MISMATCH', 'this Idempotency-Key came before with another body', {
      hint: 'use a new key for a new request',
    })
  }
  if (answer === undefined) {
    throw problem(409, 'IDEMPOTENCY_PENDING', 'the first request with this Idempotency-Key is still under way', {
      headers: { 'retry-after': '1' },
    })
  }
  return { ...answer, headers: { ...answer.headers, 'idempotency-replayed': 'true' } }
}

function recordId(c: ServerContext, caller: Caller, key: string): string {
  const url = new URL(c.req.url)
  return createHash('sha256')
    .update(JSON.stringify([caller.name, c.req.method, url.pathname, url.search, key]))
    .digest('hex')
}
