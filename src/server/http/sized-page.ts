/**
 * Pages that are limited in bytes: a thousand runs may hold a thousand payloads of 256 KiB. The store is read in portions,
 * and a page ends with the portion that exceeds the limit, so it may be shorter than the client wanted.
 */
import { breather } from '../../core/in-turns.js'
import type { Page } from '../../core/store.js'
import { afterCursor, type List, nextCursor } from '../security/cursors.js'
import { AtMost } from './at-most.js'
import { content, type Reply } from './reply.js'
import type { ServerContext } from './route.js'

/** A page with more JSON than this ends. */
const MAX_LENGTH = 2_097_152
/** The size of the first portion, whose items may all be large. */
const FIRST = 10
const LARGEST = 200

export interface Place {
  readonly after?: string
  readonly limit: number
}

/** The page that a client asks for. */
interface Wanted {
  readonly cursor: string | undefined
  readonly limit: number
}

/** Pages in the making take memory, and more at once would not make them any faster. */
const making = new AtMost(8)

/** Reads portions by `read` until the page is full, and converts their items. */
export function sizedPage<Item>(
  c: ServerContext,
  list: List,
  wanted: Wanted,
  read: (place: Place) => Promise<Page<Item>>,
  resource: (item: Item) => unknown,
): Promise<Reply> {
  return making.run(() => makePage(c, list, wanted, read, resource))
}

async function makePage<Item>(
  c: ServerContext,
  list: List,
  { limit, cursor }: Wanted,
  read: (place: Place) => Promise<Page<Item>>,
  resource: (item: Item) => unknown,
): Promise<Reply> {
  const parts: string[] = []
  const breathe = breather()
  let length = 0
  let { after: next }: { readonly after?: string } = await afterCursor(c, list, cursor)
  let portion = FIRST
  do {
    const place = next === undefined ? {} : { after: next }
    const asked = Math.min(portion, limit - parts.length)
    const page = await read({ ...place, limit: asked })
    for (const item of page.items) {
      const text = JSON.stringify(resource(item))
      parts.push(text)
      length += text.length
      await breathe()
    }
    next = page.next
    // With a short portion the store has looked through as much as one request may.
    if (page.items.length < asked) break
    portion = portionAfter(parts.length, length)
  } while (next !== undefined && parts.length < limit && length < MAX_LENGTH)
  const body = `{"data":[${parts.join(',')}],"nextCursor":${JSON.stringify(await nextCursor(c, list, next))}}`
  return content(body, 'application/json')
}

/** As many items as fit into the rest of the page, if they are as large as those before. */
function portionAfter(count: number, length: number): number {
  const fitting = Math.floor(((MAX_LENGTH - length) * count) / length)
  return Math.min(Math.max(fitting, 1), LARGEST)
}
