/**
 * All that a command says. What was asked for goes to standard output, as a table for people or as JSON for programs;
 * everything else goes to standard error.
 */

import { cleanText } from './clean-text.js'
import { type Style, styleFor } from './style.js'
import { type Column, tableLines } from './table.js'

export const FORMATS = ['table', 'json', 'jsonl'] as const
export type Format = (typeof FORMATS)[number]

export class Output {
  readonly format: Format
  readonly style: Style
  /** Columns of the terminal. Into a pipe or a file nothing is cut, unless COLUMNS says so. */
  readonly width: number
  readonly #notes: string[] = []

  constructor(format: Format) {
    this.format = format
    this.style = styleFor(process.stdout)
    const asked = Number(process.env.COLUMNS)
    const known = process.stdout.isTTY ? process.stdout.columns : asked
    this.width = known > 0 ? known : process.stdout.isTTY ? 80 : Number.POSITIVE_INFINITY
  }

  /** Something to know that is not what was asked for. */
  note(text: string): void {
    process.stderr.write(`${cleanText(text)}\n`)
  }

  /** The same once the list is out: above a long one nobody would see it. */
  noteAfter(text: string): void {
    this.#notes.push(text)
  }

  line(text: string): void {
    process.stdout.write(`${text}\n`)
  }

  /** One thing: as it is for programs, in words for people. */
  one(value: unknown, words: () => readonly string[]): void {
    if (this.format === 'json') this.line(JSON.stringify(value, null, 2))
    else if (this.format === 'jsonl') this.line(JSON.stringify(value))
    else for (const line of words()) this.line(line)
  }

  /** Many things of a kind; `none` is what people are told when there are none. */
  async list<Item>(
    items: AsyncIterable<Item> | Iterable<Item>,
    columns: readonly Column<Item>[],
    none: string,
  ): Promise<void> {
    if (this.format === 'jsonl') {
      for await (const item of items) this.line(JSON.stringify(item))
    } else if (this.format === 'json') await this.#array(items)
    else {
      const all: Item[] = []
      for await (const item of items) all.push(item)
      if (all.length === 0) this.note(none)
      else for (const line of tableLines(all, columns, this.style, this.width)) this.line(line)
    }
    for (const text of this.#notes.splice(0)) this.note(text)
  }

  async #array(items: AsyncIterable<unknown> | Iterable<unknown>): Promise<void> {
    let count = 0
    for await (const item of items) {
      process.stdout.write(`${count === 0 ? '[' : ','}\n  ${JSON.stringify(item, null, 2).replaceAll('\n', '\n  ')}`)
      count += 1
    }
    this.line(count === 0 ? '[]' : '\n]')
  }
}

/** Names and what they stand for, one a line, in two columns. What is undefined is left out. */
export function fieldLines(fields: Readonly<Record<string, string | undefined>>, style: Style): string[] {
  const given = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined)
  const width = Math.max(...given.map(([name]) => name.length))
  return given.map(([name, value]) => {
    const space = ' '.repeat(width - name.length + 2)
    return `${style.dim(name)}${space}${cleanText(value).replaceAll('\n', `\n${' '.repeat(width + 2)}`)}`
  })
}
