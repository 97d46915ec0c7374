import type { Page } from '../../../core/store.js'

/**
 * Merges the first pages of several lists into the first page of the combined list. Nothing is known of a list beyond
 * its `next`, so the merged page ends at the lowest `next`. `order` compares places, which are also the cursors.
 */
export function firstOf<Item>(
  pages: readonly Page<Item>[],
  limit: number,
  placeOf: (item: Item) => string,
  order: (one: string, other: string) => number,
): Page<Item> {
  const [end] = pages.flatMap(({ next }) => (next === undefined ? [] : [next])).sort(order)
  const known = pages
    .flatMap(({ items }) => items)
    .filter((item) => end === undefined || order(placeOf(item), end) <= 0)
    .sort((one, other) => order(placeOf(one), placeOf(other)))
  const items = known.slice(0, limit)
  const last = items.at(-1)
  if (known.length > limit && last !== undefined) return { items, next: placeOf(last) }
  return end === undefined ? { items } : { items, next: end }
}
