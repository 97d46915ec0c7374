import { expect, it } from 'vitest'
import { BoundedText } from './bounded-text.js'

function textOf(...chunks: string[]) {
  const text = new BoundedText()
  for (const chunk of chunks) text.add(Buffer.from(chunk))
  return text.whole
}

it('keeps short text unchanged', () => {
  expect(textOf('a\n', 'b\n')).toEqual({ text: 'a\nb\n', omitted: 0 })
})

it.each([1, 1_000, 100_000])('keeps the beginning and the end of long text, in chunks of %i', (size) => {
  const all = Array.from({ length: 100_000 }, (_, at) => String(at % 10)).join('')
  const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size))
  const { text, omitted } = textOf(...chunks)
  const [head = '', tail = ''] = text.split(/\n… \d+ bytes left out …\n/)
  expect(all.startsWith(head) && all.endsWith(tail)).toBe(true)
  expect(head.length + tail.length + omitted).toBe(all.length)
  expect(text.length).toBeLessThan(64 * 1_024)
})
