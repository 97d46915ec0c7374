import { z } from 'zod'
import type { Page } from '../../core/store.js'
import { problem } from '../http/problem.js'

const MAX_LIMIT = 1_000

/** How many rows a page may scan for matches, so that no request scans a whole table. */
export const LOOK = 20_000

/** Query parameters of every list. They arrive as text, so the limit is converted. */
export const paging = {
  cursor: z.string().exactOptional().meta({ description: 'The `nextCursor` of the page before.' }),
  limit: z.coerce
    .number({ error: `it must be a whole number from 1 to ${MAX_LIMIT}` })
    .int()
    .min(1)
    .max(MAX_LIMIT)
    .default(100)
    .meta({ description: `Default 100, at most ${MAX_LIMIT}.` }),
}

export function listOf<Item extends z.ZodType>(item: Item) {
  return z.strictObject({
    data: z.array(item),
    nextCursor: z.nullable(z.string()).meta({ description: 'Null on the last page.' }),
  })
}

/** Cursors are opaque to clients, because stores may change the form of theirs. */
export function cursorOf(next: string | undefined): string | null {
  return next === undefined ? null : Buffer.from(next, 'utf8').toString('base64url')
}

/** The store's `after` from a client's cursor. */
export function after(cursor: string | undefined): { readonly after?: string } {
  if (cursor === undefined) return {}
  const text = Buffer.from(cursor, 'base64url').toString('utf8')
  if (cursor !== '' && cursorOf(text) === cursor && !text.includes('\u0000')) return { after: text }
  throw problem(400, 'REQUEST_INVALID', 'the cursor does not come from a list', {
    errors: [{ pointer: 'cursor', message: 'it does not come from a list' }],
    hint: 'leave it out to start from the first page',
  })
}

export function toList<Item, Resource>({ items, next }: Page<Item>, resource: (item: Item) => Resource) {
  return { data: items.map(resource), nextCursor: cursorOf(next) }
}
