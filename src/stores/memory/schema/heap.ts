/**
 * A binary heap whose items know their place in it, so that an item in the middle can be removed. The place is a field of the
 * item; an item that can be in two heaps at a time has a field for each.
 */
export type Placed<Slot extends string> = { [Place in Slot]: number }

/** The place of an item that is in no heap. */
export const NOWHERE = -1

export class Heap<Slot extends string, Item extends Placed<Slot>> {
  readonly #items: Item[] = []
  readonly #slot: Slot
  readonly #before: (one: Item, other: Item) => boolean

  constructor(slot: Slot, before: (one: Item, other: Item) => boolean) {
    this.#slot = slot
    this.#before = before
  }

  get size(): number {
    return this.#items.length
  }

  /** The item that comes before all others. */
  get first(): Item | undefined {
    return this.#items[0]
  }

  /** All items, in no order. */
  items(): Iterable<Item> {
    return this.#items.values()
  }

  push(item: Item): void {
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  pop(): Item | undefined {
    const first = this.#items[0]
    if (first !== undefined) this.remove(first)
    return first
  }

  remove(item: Item): void {
    const at = this.#placeOf(item)
    const last = this.#items.pop()
    this.#put(item, NOWHERE)
    if (last === undefined || last === item) return
    this.#rise(last, at)
    this.#sink(last, this.#placeOf(last))
  }

  #placeOf(item: Placed<Slot>): number {
    return item[this.#slot]
  }

  #put(item: Placed<Slot>, at: number): void {
    item[this.#slot] = at
  }

  #rise(item: Item, from: number): void {
    let at = from
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = this.#items[above] as Item
      if (!this.#before(item, parent)) break
      this.#items[at] = parent
      this.#put(parent, at)
      at = above
    }
    this.#items[at] = item
    this.#put(item, at)
  }

  #sink(item: Item, from: number): void {
    const { length } = this.#items
    let at = from
    for (let below = 2 * at + 1; below < length; below = 2 * at + 1) {
      const right = below + 1
      if (right < length && this.#before(this.#items[right] as Item, this.#items[below] as Item)) below = right
      const child = this.#items[below] as Item
      if (!this.#before(child, item)) break
      this.#items[at] = child
      this.#put(child, at)
      at = below
    }
    this.#items[at] = item
    this.#put(item, at)
  }
}
