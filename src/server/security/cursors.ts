/**
 * Cursors of lists. A store's own cursor names the row where a page ended, and a store may read rows that the caller may not
 * see. So the service encrypts it, with a key for each list, and binds it to what the caller may see:
 *
 *     "r1042" ──AES-256-GCM──▶ nonce (12 bytes) + ciphertext + tag (16 bytes), in base64url
 *                │
 *                ├── key: the service's secret and the list, so a cursor works in its own list alone
 *                └── authenticated: the caller's scope, so a cursor works for callers who see the same
 *
 * The nonce is an HMAC of the text, so one place has one cursor. The text is padded, because its length would tell how long
 * an id is.
 */
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { canonicalJson } from '../../core/checks/json.js'
import type { Page } from '../../core/store.js'
import { problem } from '../http/problem.js'
import type { ServerContext } from '../http/route.js'
import { scopeOf } from './visibility.js'

/** The lists that have cursors, by the ids of their routes. */
export type List = 'listSchedules' | 'listRuns' | 'cancelRuns' | 'retryRuns' | 'listLocks' | 'listAudit'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const BLOCK = 32
/** Longer than any cursor that `sealed` makes: a name has at most 255 characters, and a lock's cursor has two. */
const MAX_LENGTH = 4_096

/** The client's cursor from the store's; null on the last page. */
export async function nextCursor(c: ServerContext, list: List, next: string | undefined): Promise<string | null> {
  if (next === undefined) return null
  const key = await keyOf(c, list)
  const text = padded(next)
  const scope = scopeText(c)
  const nonce = createHmac('sha256', key).update(scope).update(text).digest().subarray(0, NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(scope)
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

/** The store's `after` from the client's cursor. `pointer` says where the request has it. */
export async function afterCursor(
  c: ServerContext,
  list: List,
  cursor: string | undefined,
  pointer = 'cursor',
): Promise<{ readonly after?: string }> {
  if (cursor === undefined) return {}
  const sealed = cursor.length <= MAX_LENGTH ? Buffer.from(cursor, 'base64url') : Buffer.alloc(0)
  const isWhole = sealed.length > NONCE_BYTES + TAG_BYTES && sealed.toString('base64url') === cursor
  const text = isWhole ? opened(await keyOf(c, list), scopeText(c), sealed) : undefined
  if (text !== undefined) return { after: text }
  const message = 'it does not come from this list, or it was made for a caller who sees other things'
  throw problem(400, 'REQUEST_INVALID', `cursor: ${message}`, {
    errors: [{ pointer, message }],
    hint: 'leave it out to start from the first page',
  })
}

/** A page as its route answers it. */
export async function listReply<Item, Resource>(
  c: ServerContext,
  list: List,
  { items, next }: Page<Item>,
  resource: (item: Item) => Resource,
): Promise<{ readonly data: Resource[]; readonly nextCursor: string | null }> {
  return { data: items.map(resource), nextCursor: await nextCursor(c, list, next) }
}

function opened(key: Buffer, scope: Buffer, sealed: Buffer): string | undefined {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES))
  decipher.setAAD(scope).setAuthTag(sealed.subarray(-TAG_BYTES))
  const text = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES))
  try {
    decipher.final()
  } catch {
    return undefined
  }
  return text.subarray(2, 2 + text.readUInt16BE()).toString('utf8')
}

function padded(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  const block = Buffer.alloc(Math.ceil((bytes.length + 2) / BLOCK) * BLOCK)
  block.writeUInt16BE(bytes.length)
  bytes.copy(block, 2)
  return block
}

function scopeText(c: ServerContext): Buffer {
  return Buffer.from(canonicalJson(scopeOf(c.get('caller'))))
}

function keyOf(c: ServerContext, list: List): Promise<Buffer> {
  return c.env.secret.key(`cursor:${list}`)
}
