// @ts-check
/**
 * `Map.groupBy` for older runtimes.
 * @template Item
 * @param {readonly Item[]} items
 * @param {(item: Item) => string | undefined} keyOf items without a key form one group, under the empty key
 */
export function groupBy(items, keyOf) {
  /** @type {Map<string, Item[]>} */
  const groups = new Map()
  for (const item of items) {
    const key = keyOf(item) ?? ''
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
