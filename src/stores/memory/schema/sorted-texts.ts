/** Texts in order, each once. They lie in blocks, so that adding one to a million moves a few hundred at most. */
const MOST = 512

export class SortedTexts {
  readonly #blocks: string[][] = []

  add(text: string): void {
    const at = Math.max(this.#blockOf(text), 0)
    const block = this.#blocks[at]
    if (block === undefined) {
      this.#blocks.push([text])
      return
    }
    const place = placeOf(block, text)
    if (block[place] === text) return
    block.splice(place, 0, text)
    if (block.length > MOST) this.#blocks.splice(at + 1, 0, block.splice(MOST / 2))
  }

  delete(text: string): void {
    const at = this.#blockOf(text)
    const block = this.#blocks[at]
    if (block === undefined) return
    const place = placeOf(block, text)
    if (block[place] !== text) return
    block.splice(place, 1)
    if (block.length === 0) this.#blocks.splice(at, 1)
  }

  /** All texts from a place on. */
  *from(first: string): Generator<string, void> {
    const start = Math.max(this.#blockOf(first), 0)
    for (let at = start; at < this.#blocks.length; at += 1) {
      const block = this.#blocks[at] ?? []
      for (let place = at === start ? placeOf(block, first) : 0; place < block.length; place += 1) {
        yield block[place] ?? ''
      }
    }
  }

  /** All texts before a place, or all there are, the last one first. */
  *before(end: string | undefined): Generator<string, void> {
    const start = end === undefined ? this.#blocks.length - 1 : this.#blockOf(end)
    for (let at = start; at >= 0; at -= 1) {
      const block = this.#blocks[at] ?? []
      for (
        let place = (end !== undefined && at === start ? placeOf(block, end) : block.length) - 1;
        place >= 0;
        place -= 1
      ) {
        yield block[place] ?? ''
      }
    }
  }

  /** The last block whose first text is not after this one; -1 if all are. */
  #blockOf(text: string): number {
    let [low, high] = [0, this.#blocks.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#blocks[middle]?.[0] ?? '') <= text) low = middle + 1
      else high = middle
    }
    return low - 1
  }
}

/** Where in a block the text is, or would be. */
function placeOf(block: readonly string[], text: string): number {
  let [low, high] = [0, block.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((block[middle] ?? '') < text) low = middle + 1
    else high = middle
  }
  return low
}
