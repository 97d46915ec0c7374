/**
 * Idempotency-Key: a request repeated with the same key takes effect once, and gets the same answer for a day.
 *
 *     free ──put ifAbsent──▶ reserved (2 min) ──done──▶ answered (1 day)
 *                               │
 *                               └──the work failed, or the process died──▶ free
 *
 * A record reserves the key before the work starts, and holds the answer afterwards. While the key is reserved, a repeated
 * request gets 409 and retries later. If the process dies in between, the reservation expires, and a repeated request does
 * the work again. Then the store detects the repetition: what the request creates is named after the key (`Repeatable`).
 *
 * The name is an HMAC of the caller, the request and its key under the service's secret, so no other caller can compute it
 * and create something under it first. Two spellings of one path, such as `/a` and `/%61`, are the same request:
 *
 *     caller "ci", POST /v1/jobs/mail/runs, key "order-7"   →   "belfry:idempotency:5f1c…64 hex digits…"
 */
import { createHash, createHmac, randomUUID } from 'node:crypto'
import type { Belfry } from '../../belfry.js'
import { canonicalJson, type Json } from '../../core/checks/json.js'
import { IDEMPOTENCY_NAMESPACE } from '../security/reserved-names.js'
import { scopeOf } from '../security/visibility.js'
import { problem } from './problem.js'
import type { Reply } from './reply.js'
import type { ServerContext } from './route.js'

const KIND = 'idempotency'
const PENDING_MS = 120_000
const DONE_MS = 24 * 3_600_000
/** How long the store refuses a second run with the same dedupe key. */
const UNIQUE_FOR = '1d'
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

/** A request with an Idempotency-Key: the names under which its repetitions find what it has created. */
export interface Repeatable {
  /** For the id of a schedule. */
  readonly name: string
  /** The dedupe key of a run, in a namespace that requests cannot use. */
  readonly dedupe: { readonly key: string; readonly keyFor: string }
}

type Work = (repeatable?: Repeatable) => Promise<Reply>

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
  const id = createHmac('sha256', await c.env.secret.key('idempotency'))
    .update(requestText(c, key))
    .digest('hex')
  // A caller whose rights have changed since does not get the old answer.
  const fingerprint = createHash('sha256')
    .update(canonicalJson([scopeOf(c.get('caller')), (body ?? null) as Json]))
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
    reply = await work({ name: id, dedupe: { key: `${IDEMPOTENCY_NAMESPACE}${id}`, keyFor: UNIQUE_FOR } })
  } catch (error) {
    // The work failed, or its outcome is unknown: free the key, so that the client can retry.
    await belfry.records.remove(KIND, id).catch(() => {})
    throw error
  }
  const { status, headers, body: text } = reply
  const answer = { status, headers, body: typeof text === 'string' ? text : '' }
  // The work is done, so a failure here must not fail the request. The store detects a repetition by its name.
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

/** The caller, the request and its key as one text, which does not depend on how the URL is percent-encoded. */
function requestText(c: ServerContext, key: string): string {
  const { pathname, searchParams } = new URL(c.req.url)
  const path = pathname.split('/').map(decodeURIComponent)
  const query = [...searchParams].map((pair) => JSON.stringify(pair)).sort()
  return JSON.stringify([c.get('caller').name, c.req.method, path, query, key])
}
