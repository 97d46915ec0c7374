/** The options --limit and --all of lists. */
import { type Command, InvalidArgumentError } from 'commander'
import type { Output } from '../terminal/output.js'

export interface Limited {
  readonly limit: number
  readonly all?: boolean
}

export function withLimit(command: Command): Command {
  return command
    .option('-n, --limit <count>', 'how many to show', wholeNumber(1, 1_000_000), 100)
    .option('--all', 'show all')
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text)
    if (/^-?\d+$/.test(text) && number >= least && number <= most) return number
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** Yields the first items up to the limit, and notes if there are more. */
export async function* firstOf<Item>(
  items: AsyncIterable<Item>,
  { limit, all = false }: Limited,
  out: Output,
): AsyncGenerator<Item> {
  let count = 0
  for await (const item of items) {
    if (!all && count === limit) return out.noteAfter(`there are more than ${limit}: --limit or --all shows them`)
    count += 1
    yield item
  }
}

/** The page size is one more than the limit, so that the first page shows whether there are more. */
export function pageSize({ limit, all = false }: Limited, most: number): number {
  return all ? most : Math.min(limit + 1, most)
}
