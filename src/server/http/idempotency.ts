/**
 * Idempotency-Key: a request repeated with the same key takes effect once, and gets the same answer for a day.
 *
 *     free ──put ifAbsent──▶ reserved (2 min) ──done──▶ answered (1 day)
 *                               │
 *                               └──the work failed, or the process died──▶ free
 *
 * A record reserves the key before the work starts, and holds the answer afterwards. While the key is reserved, a repeated
 * request gets 409 and retries later. If the process dies in between, the reservation expires, and a repeated request does
 * the work again. Then the store detects the repetition: what the request creates is named after the key (`uniqueName`).
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Belfry } from '../../belfry.js'
import { canonicalJson, type Json } from '../../core/checks/json.js'
import type { Caller } from '../security/caller.js'
import { problem } from './problem.js'
import type { Reply } from './reply.js'
import type { ServerContext } from './route.js'

const KIND = 'idempotency'
const PENDING_MS = 120_000
const DONE_MS = 24 * 3_600_000
/** How long the store refuses a second run with the same `uniqueName`. */
export const UNIQUE_FOR = '1d'
const KEY = /^[\x21-\x7e]{1,255}$/

interface StoredKey {
  readonly fingerprint: string
  readonly attempt?: string
  readonly answer?: StoredAnswer
}

interface StoredAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Names the schedule or run that this request creates; a repetition gets the same name. Undefined without a key. */
export function uniqueName(c: ServerContext): string | undefined {
  const key = c.req.header('idempotency-key')
  return key === undefined ? undefined : recordId(c, c.get('caller'), key)
}

type Work = () => Promise<Reply>

/** Does the work unless the key is reserved or answered already. A request without a key always does the work. */
export async function once(belfry: Belfry, c: ServerContext, body: unknown, work: Work): Promise<Reply> {
  const key = c.req.header('idempotency-key')
  if (key === undefined) return work()
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
  const found = record.body as unknown as StoredKey
  if (found.attempt !== attempt) return replay(found, fingerprint)
  let reply: Reply
  try {
    reply = await work()
  } catch (error) {
    // The work failed, or its outcome is unknown: free the key, so that the client can retry.
    await belfry.records.remove(KIND, id).catch(() => {})
    throw error
  }
  const { status, headers, body: text } = reply
  const answer = { status, headers, body: typeof text === 'string' ? text : '' }
  // The work is done, so a failure here must not fail the request. The store detects a repetition by its `uniqueName`.
  await belfry.records.put({ kind: KIND, id, ttlMs: DONE_MS, body: { fingerprint, answer } }).catch(() => {})
  return reply
}

function replay({ fingerprint, answer }: StoredKey, own: string): Reply {
  if (fingerprint !== own) {
    throw problem(422, 'IDEMPOTENCY_MISMATCH', 'this Idempotency-Key was used before with another body', {
      hint: 'use a new key for a new request',
    })
  }
  if (answer === undefined) {
    throw problem(409, 'IDEMPOTENCY_PENDING', 'the first request with this Idempotency-Key is still in flight', {
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
