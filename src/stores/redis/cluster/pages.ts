import type { Page } from '../../../core/store.js'

/**
 * The first page of several lists, each of which is a first page itself. One that was not looked through to its end says
 * nothing of what comes after its `next`, so neither does the whole.
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
