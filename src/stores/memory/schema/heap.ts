/** A binary heap that knows where each of its items is, so that any of them can be removed. An item is in it once at most. */
export class Heap<Item> {
  readonly #items: Item[] = []
  readonly #places = new Map<Item, number>()
  readonly #before: (one: Item, other: Item) => boolean

  constructor(before: (one: Item, other: Item) => boolean) {
    this.#before = before
  }

  get size(): number {
    return this.#items.length
  }

  /** The item that comes before all others. */
  get first(): Item | undefined {
    return this.#items[0]
  }

  has(item: Item): boolean {
    return this.#places.has(item)
  }

  /** All items, in no order. */
  items(): Iterable<Item> {
    return this.#items.values()
  }

  push(item: Item): void {
    this.#rise(item, this.#items.push(item) - 1)
  }

  remove(item: Item): void {
    const at = this.#places.get(item)
    if (at === undefined) return
    this.#places.delete(item)
    const last = this.#items.pop()
    if (last === undefined || last === item) return
    this.#sink(last, this.#rise(last, at))
  }

  /** Moves an item up from a place, and returns its new one. */
  #rise(item: Item, from: number): number {
    let at = from
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = this.#items[above] as Item
      if (!this.#before(item, parent)) break
      this.#put(parent, at)
      at = above
    }
    this.#put(item, at)
    return at
  }

  #sink(item: Item, from: number): void {
    const { length } = this.#items
    let at = from
    for (let below = 2 * at + 1; below < length; below = 2 * at + 1) {
      const right = below + 1
      if (right < length && this.#before(this.#items[right] as Item, this.#items[below] as Item)) below = right
      const child = this.#items[below] as Item
      if (!this.#before(child, item)) break
      this.#put(child, at)
      at = below
    }
    this.#put(item, at)
  }

  #put(item: Item, at: number): void {
    this.#items[at] = item
    this.#places.set(item, at)
  }
}
