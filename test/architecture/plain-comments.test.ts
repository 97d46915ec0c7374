import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Words that hide the subject of a sentence: "whoever asks" instead of "the caller", "is told" instead of "gets an
 * error". Some sentences need one of them, so a few per 1,000 words are permitted.
 */
const OBLIQUE =
  /\b(whoever|nobody|somebody|anybody|everybody|anew|to be had|stands in|(?:is|are) told|those who|whom?|he|his|him|goes? on|what (?:is|was|has))\b/gi

/** Oblique words permitted per 1,000 words of comments. Lower a number when the comments have become plainer. */
const CEILINGS = { src: 3.5, test: 0.8, bench: 1.5 }

interface Comment {
  readonly line: number
  readonly text: string
}

/** Finds only comments that fill whole lines, as nearly all do. The others would need a parser for each language. */
function commentsOf(file: string, text: string): Comment[] {
  const begin = /\.(sql|lua)$/.test(file) ? /^\s*--/ : /^\s*(\/\*|\*|\/\/)/
  return text.split('\n').flatMap((line, at) => (begin.test(line) ? [{ line: at + 1, text: line }] : []))
}

function obliqueWords({ text }: Comment): string[] {
  return [...text.matchAll(OBLIQUE)].map(([word]) => word)
}

function filesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|js|sql|lua)$/.test(file) && !file.includes('node_modules'))
    .map((file) => join(folder, file))
}

it.each(Object.entries(CEILINGS))('the comments in %s/ name their subject', (folder, ceiling) => {
  const comments = filesIn(folder).flatMap((file) =>
    commentsOf(file, readFileSync(join(ROOT, file), 'utf8')).map((comment) => ({ ...comment, file })),
  )
  const words = comments.reduce((sum, { text }) => sum + (text.match(/[a-z']+/gi)?.length ?? 0), 0)
  const found = comments.flatMap((comment) =>
    obliqueWords(comment).map((word) => `${comment.file}:${comment.line}: "${word}"`),
  )
  const permitted = Math.ceil((words * ceiling) / 1_000)
  const message = `${found.length} oblique words, ${permitted} permitted:\n${found.join('\n')}`
  expect(found.length, message).toBeLessThanOrEqual(permitted)
})

it('finds comments and oblique words in every language of the source', () => {
  expect(commentsOf('a.ts', '/** Whoever. */\n/*\n * Nobody.\n */\nlet who = 1\n  // He.')).toHaveLength(5)
  expect(commentsOf('a.sql', 'select 1\n-- Those who wait.')).toEqual([{ line: 2, text: '-- Those who wait.' }])
  expect(obliqueWords({ line: 1, text: '// Whoever is told: what is done goes on' })).toHaveLength(4)
})
