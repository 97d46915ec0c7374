import type { Page } from '../../core/store.js'

/** The first page of several lists, each of which is a first page itself. */
export function firstOf<Item>(
  pages: readonly Page<Item>[],
  limit: number,
  order: (one: Item, other: Item) => number,
  place: (item: Item) => string,
): Page<Item> {
  const [only] = pages
  if (only !== undefined && pages.length === 1) return only
  const all = pages.flatMap(({ items }) => items).sort(order)
  const more = all.length > limit || pages.some(({ next }) => next !== undefined)
  const items = all.slice(0, limit)
  const last = items.at(-1)
  return more && last !== undefined ? { items, next: place(last) } : { items }
}
