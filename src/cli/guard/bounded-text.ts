/** Output of any length in bounded memory: its beginning and its end. */
const HEAD = 16 * 1_024
const TAIL = 44 * 1_024

export class BoundedText {
  #head = Buffer.alloc(0)
  #tail: Buffer[] = []
  #tailLength = 0
  #omitted = 0

  add(chunk: Buffer): void {
    const room = HEAD - this.#head.length
    if (room > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, room)])
    if (chunk.length <= room) return
    const rest = chunk.subarray(Math.max(room, 0))
    this.#tail.push(rest)
    this.#tailLength += rest.length
    for (let first = this.#tail[0]; first !== undefined && this.#tailLength > TAIL; first = this.#tail[0]) {
      const surplus = Math.min(this.#tailLength - TAIL, first.length)
      if (surplus === first.length) this.#tail.shift()
      else this.#tail[0] = first.subarray(surplus)
      this.#tailLength -= surplus
      this.#omitted += surplus
    }
  }

  /** What is not UTF-8, or was cut in the middle of a character, is shown as such. */
  get whole(): { readonly text: string; readonly omitted: number } {
    const gap = this.#omitted === 0 ? '' : `\n… ${this.#omitted} bytes are left out here …\n`
    const text = `${this.#head.toString('utf8')}${gap}${Buffer.concat(this.#tail).toString('utf8')}`
    return { text, omitted: this.#omitted }
  }
}
