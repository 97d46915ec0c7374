/** Splits a stream of UTF-8 into lines, holding no more than one of them. */
export type TextLine = { readonly text: string } | { readonly tooLong: true }

export async function* textLines(stream: AsyncIterable<Uint8Array>, maxLength: number): AsyncGenerator<TextLine[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let carry = ''
  let isSkipping = false
  for await (const chunk of stream) {
    const parts = decoder.decode(chunk, { stream: true }).split('\n')
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
  carry += decoder.decode()
  if (isSkipping) yield [{ tooLong: true }]
  else if (carry !== '') yield [{ text: carry }]
}
