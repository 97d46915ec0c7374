/** Keeps the beginning and the end of output of any length, in bounded memory. */
const HEAD = 16 * 1_024
const TAIL = 44 * 1_024

export class BoundedText {
  readonly #head = Buffer.alloc(HEAD)
  /** A ring buffer of the latest bytes. */
  readonly #tail = Buffer.alloc(TAIL)
  #length = 0

  add(chunk: Buffer): void {
    const copied = this.#length < HEAD ? chunk.copy(this.#head, this.#length) : 0
    this.#length += copied
    let rest = chunk.subarray(copied)
    this.#length += Math.max(rest.length - TAIL, 0)
    rest = rest.subarray(Math.max(rest.length - TAIL, 0))
    while (rest.length > 0) {
      const fitted = rest.copy(this.#tail, (this.#length - HEAD) % TAIL)
      this.#length += fitted
      rest = rest.subarray(fitted)
    }
  }

  /** Invalid UTF-8, and characters cut at the gap, become U+FFFD. */
  get whole(): { readonly text: string; readonly omitted: number } {
    const tailLength = Math.max(this.#length - HEAD, 0)
    const omitted = Math.max(tailLength - TAIL, 0)
    const at = tailLength % TAIL
    const head = this.#head.subarray(0, Math.min(this.#length, HEAD))
    const tail =
      omitted === 0
        ? this.#tail.subarray(0, tailLength)
        : Buffer.concat([this.#tail.subarray(at), this.#tail.subarray(0, at)])
    const gap = omitted === 0 ? [] : [Buffer.from(`\n… ${omitted} bytes left out …\n`)]
    return { text: Buffer.concat([head, ...gap, tail]).toString('utf8'), omitted }
  }
}
