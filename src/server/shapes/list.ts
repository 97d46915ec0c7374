import { z } from 'zod'
import type { Page } from '../../core/store.js'
import { problem } from '../http/problem.js'

const MAX_LIMIT = 1_000

/** How many one page looks through at the most for those that were asked for: no request walks through a whole table. */
export const LOOK = 20_000

/** What every list can be asked for. Query parameters are text. */
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

/** Cursors are opaque to others: what a store's own look like may change. */
export function cursorOf(next: string | undefined): string | null {
  return next === undefined ? null : Buffer.from(next, 'utf8').toString('base64url')
}

/** What a cursor stands for, as the store's `after`. */
export function after(cursor: string | undefined): { readonly after?: string } {
  if (cursor === undefined) return {}
  const text = Buffer.from(cursor, 'base64url').toString('utf8')
  if (cursor !== '' && cursorOf(text) === cursor && !text.includes('\u0000')) return { after: text }
  throw problem(400, 'REQUEST_INVALID', 'the cursor is not one that a list gave', {
    errors: [{ pointer: 'cursor', message: 'it is not one that a list gave' }],
    hint: 'leave it out to begin anew',
  })
}

export function toList<Item, Resource>({ items, next }: Page<Item>, resource: (item: Item) => Resource) {
  return { data: items.map(resource), nextCursor: cursorOf(next) }
}
