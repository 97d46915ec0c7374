/** Splits a file into parts of whole lines, each small enough for one request. */

export interface LinePart {
  /** Whole lines, each with its line break. */
  readonly text: string
  /** How much of the file has been read, from 0 to 1; undefined if its size is unknown. */
  readonly share: number | undefined
}

const PART_LINES = 2_000
const PART_BYTES = 2_000_000
const NEWLINE = 0x0a

/** Skips the lines before number `first`. */
export async function* lineParts(
  chunks: AsyncIterable<Buffer>,
  size: number | undefined,
  first: number,
): AsyncGenerator<LinePart> {
  let [toSkip, read] = [first - 1, 0]
  let rest: Buffer = Buffer.alloc(0)
  const part = (bytes: Buffer): LinePart => ({
    text: bytes.toString('utf8'),
    share: size === undefined ? undefined : size === 0 ? 1 : (read - rest.length) / size,
  })
  for await (const chunk of chunks) {
    read += chunk.length
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let end = rest.indexOf(NEWLINE); toSkip > 0 && end !== -1; end = rest.indexOf(NEWLINE)) {
      rest = rest.subarray(end + 1)
      toSkip -= 1
    }
    for (let end = endOfPart(rest); toSkip === 0 && end > 0; end = endOfPart(rest)) {
      const bytes = rest.subarray(0, end)
      rest = rest.subarray(end)
      yield part(bytes)
    }
  }
  if (toSkip > 0 || rest.length === 0) return
  const bytes = rest.at(-1) === NEWLINE ? rest : Buffer.concat([rest, Buffer.from('\n')])
  rest = Buffer.alloc(0)
  yield part(bytes)
}

/** The end of the next full part; 0 if there are not enough bytes for one. */
function endOfPart(bytes: Buffer): number {
  let end = 0
  for (let lines = 0; lines < PART_LINES && end < PART_BYTES; lines += 1) {
    const next = bytes.indexOf(NEWLINE, end)
    if (next === -1) return 0
    end = next + 1
  }
  return end
}
