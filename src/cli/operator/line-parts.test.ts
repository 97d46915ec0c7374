import { expect, it } from 'vitest'
import { lineParts } from './line-parts.js'

async function partsOf(text: string, chunk: number, first = 1) {
  const bytes = Buffer.from(text)
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk)
  }
  const parts: { text: string; share: number | undefined }[] = []
  for await (const part of lineParts(chunks(), bytes.length, first)) parts.push(part)
  return parts
}

const LINES = Array.from({ length: 4_345 }, (_, at) => `line ${at + 1} ü\n`)

it.each([700, 10_000, 1_000_000])('sends every line once, unsplit, from chunks of %i', async (chunk) => {
  const parts = await partsOf(LINES.join(''), chunk)
  expect(parts.map(({ text }) => text).join('')).toBe(LINES.join(''))
  expect(parts.map(({ text }) => text.split('\n').length - 1)).toEqual([2_000, 2_000, 345])
  expect(parts.at(-1)?.share).toBe(1)
})

it('starts at a given line, and adds a line end to the last one', async () => {
  const parts = await partsOf(`${LINES.slice(0, 20).join('')}last`, 64, 20)
  expect(parts).toEqual([{ text: 'line 20 ü\nlast\n', share: 1 }])
  expect(await partsOf('a\nb\n', 3, 3)).toEqual([])
  expect(await partsOf('a\nb\n', 3, 9)).toEqual([])
})
