/**
 * The output of a command. Results go to standard output, as a table for people or as JSON for programs; notes go to standard
 * error.
 */
import { cleanText, writeLine } from './clean-text.js'
import { type Style, styleFor } from './style.js'
import { type Column, tableLines } from './table.js'

export const FORMATS = ['table', 'json', 'jsonl'] as const
export type Format = (typeof FORMATS)[number]

export class Output {
  readonly format: Format
  readonly style: Style
  /** Columns of the terminal. Output to a pipe or file is not cut, unless COLUMNS is set. */
  readonly width: number
  readonly #notes: string[] = []

  constructor(format: Format) {
    this.format = format
    this.style = styleFor(process.stdout)
    const columns = Number(process.env.COLUMNS)
    const known = process.stdout.isTTY ? process.stdout.columns : columns
    this.width = known > 0 ? known : process.stdout.isTTY ? 80 : Number.POSITIVE_INFINITY
  }

  /** A line on standard error. */
  note(text: string): void {
    writeLine(process.stderr, text)
  }

  /** A note after the list, so that a long list does not scroll it away. */
  noteAfter(text: string): void {
    this.#notes.push(text)
  }

  line(text: string): void {
    writeLine(process.stdout, text)
  }

  /** One result: JSON for programs, `text` for people. */
  one(value: unknown, text: () => readonly string[]): void {
    if (this.format === 'json') this.line(JSON.stringify(value, null, 2))
    else if (this.format === 'jsonl') this.line(JSON.stringify(value))
    else for (const line of text()) this.line(line)
  }

  /** A list of results; `none` is the note when it is empty. */
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
    this.notes()
  }

  /** Prints the notes that come after the results. */
  notes(): void {
    for (const text of this.#notes.splice(0)) this.note(text)
  }

  async #array(items: AsyncIterable<unknown> | Iterable<unknown>): Promise<void> {
    let count = 0
    for await (const item of items) {
      const json = cleanText(JSON.stringify(item, null, 2)).replaceAll('\n', '\n  ')
      process.stdout.write(`${count === 0 ? '[' : ','}\n  ${json}`)
      count += 1
    }
    this.line(count === 0 ? '[]' : '\n]')
  }
}

/** Names and values in two columns, one pair a line. Undefined values are left out. */
export function fieldLines(fields: Readonly<Record<string, string | undefined>>, style: Style): string[] {
  const given = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined)
  const width = Math.max(...given.map(([name]) => name.length))
  return given.map(([name, value]) => {
    const space = ' '.repeat(width - name.length + 2)
    return `${style.dim(name)}${space}${cleanText(value).replaceAll('\n', `\n${' '.repeat(width + 2)}`)}`
  })
}
