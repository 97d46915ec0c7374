/** Splits a UTF-8 stream into lines. Memory holds one chunk and one unfinished line. */
export type TextLine = { readonly text: string } | { readonly tooLong: true }

export class NotText extends Error {}

export async function* textLines(stream: AsyncIterable<Uint8Array>, maxLength: number): AsyncGenerator<TextLine[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Uint8Array) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch (cause) {
      throw new NotText('the text is not UTF-8', { cause })
    }
  }
  let carry = ''
  let isSkipping = false
  for await (const chunk of stream) {
    const parts = decode(chunk).split('\n')
    const lines: TextLine[] = []
    for (let at = 0; at < parts.length - 1; at += 1) {
      const text = at === 0 ? carry + parts[at] : (parts[at] ?? '')
      lines.push(isSkipping || text.length > maxLength ? { tooLong: true } : { text })
      isSkipping = false
      carry = ''
    }
    carry += parts.at(-1) ?? ''
    if (carry.length > maxLength) {
      isSkipping = true
      carry = ''
    }
    if (lines.length > 0) yield lines
  }
  carry += decode()
  if (isSkipping) yield [{ tooLong: true }]
  else if (carry !== '') yield [{ text: carry }]
}
