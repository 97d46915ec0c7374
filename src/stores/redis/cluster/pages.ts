import type { Page } from '../../../core/store.js'

/**
 * Merges the first pages of several lists into the first page of all. A list with a `next` is unknown beyond it, so the
 * merged page ends at the first `next`.
 */
export function firstOf<Item>(
  pages: readonly Page<Item>[],
  limit: number,
  order: (one: Item, other: Item) => number,
  place: (item: Item) => string,
  placeOrder: (one: string, other: string) => number,
): Page<Item> {
  const [only] = pages
  if (only !== undefined && pages.length === 1) return only
  const ends = pages.flatMap(({ next }) => (next === undefined ? [] : [next])).sort(placeOrder)
  const [end] = ends
  const known = pages
    .flatMap(({ items }) => items)
    .filter((item) => end === undefined || placeOrder(place(item), end) <= 0)
    .sort(order)
  const items = known.slice(0, limit)
  const last = items.at(-1)
  if (known.length > limit && last !== undefined) return { items, next: place(last) }
  return end === undefined ? { items } : { items, next: end }
}
