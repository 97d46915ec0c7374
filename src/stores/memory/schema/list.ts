/** A linked list, oldest first, from which any item can be removed in constant time. */
export interface Link<Item> {
  readonly item: Item
  older: Link<Item> | undefined
  newer: Link<Item> | undefined
}

export class List<Item> {
  oldest: Link<Item> | undefined
  newest: Link<Item> | undefined
  size = 0

  append(item: Item): Link<Item> {
    const link: Link<Item> = { item, older: this.newest, newer: undefined }
    if (this.newest === undefined) this.oldest = link
    else this.newest.newer = link
    this.newest = link
    this.size += 1
    return link
  }

  remove(link: Link<Item>): void {
    if (link.older === undefined) this.oldest = link.newer
    else link.older.newer = link.newer
    if (link.newer === undefined) this.newest = link.older
    else link.newer.older = link.older
    this.size -= 1
  }
}
