import { existsSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { located } from '../api/located.js'
import { failure } from '../core/errors.js'
import type { Timeline } from '../time/timeline.js'

interface NextOptions {
  readonly tz?: string
  readonly count: number
  readonly from?: string
  readonly output: 'table' | 'json' | 'jsonl'
}

export function nextCommand(): Command {
  return new Command('next')
    .description('show when an expression fires next')
    .argument('<expression>', 'in quotes: cron, a nickname, "@every 90m" or "@at 2026-03-01T09:00:00Z"')
    .allowExcessArguments()
    .option('--tz <zone>', 'IANA time zone of the expression', process.env.BELFRY_TZ)
    .option('-n, --count <count>', 'how many ticks', countOf, 5)
    .option('--from <instant>', 'start here instead of now (ISO 8601 or unix seconds)')
    .option('-o, --output <format>', 'table, json or jsonl', formatOf, 'table')
    .addHelpText(
      'after',
      `
Examples:
  belfry next "0 9 * * 1-5" --tz Europe/Berlin
  belfry next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28T00:00:00Z -n 3
  belfry next "@every 90m" -o json`,
    )
    .action((_, options: NextOptions, { args }: Command) => showNext(args, options))
}

async function showNext(words: readonly string[], { tz, count, from, output }: NextOptions): Promise<void> {
  const expression = oneExpression(words)
  const { instantMs, timeline } = await import('../time/index.js')
  const now = Date.now()
  const after = from === undefined ? now : located('--from', () => instantMs(from)) - 1
  const spec =
    tz === undefined || expression.trim().startsWith('@every') ? expression : { cron: expression, timezone: tz }
  const line = timeline(spec, after)
  const ticks = line.between(after, Number.POSITIVE_INFINITY, count)
  // Who has read enough closes the pipe.
  process.stdout.on('error', () => process.exit())
  if (output === 'table') return printTable(line, ticks, tz ?? 'UTC', after, now)
  const records = ticks.map((tick) => ({ at: new Date(tick).toISOString(), unix: Math.floor(tick / 1_000) }))
  if (output === 'json')
    process.stdout.write(`${JSON.stringify({ description: line.describe(), ticks: records }, null, 2)}\n`)
  else for (const record of records) process.stdout.write(`${JSON.stringify(record)}\n`)
}

/** Without quotes the shell splits an expression at its spaces, and puts file names in the place of each `*`. */
function oneExpression(words: readonly string[]): string {
  if (words.length === 1 && words[0] !== undefined) return words[0]
  const expanded = words.some((word) => /[a-z]/i.test(word) && existsSync(word))
  const example = expanded ? '0 9 * * 1-5' : words.join(' ')
  const what = expanded ? ' and put file names in the place of *' : ''
  throw failure(
    'OPTION_INVALID',
    `the expression came in ${words.length} words, because the shell has split it${what}: quote it, as in belfry next "${example}"`,
  )
}

async function printTable(
  line: Timeline,
  ticks: readonly number[],
  tz: string,
  after: number,
  now: number,
): Promise<void> {
  const [{ styleFor }, { relative, wallClock }] = await Promise.all([import('./style.js'), import('./human-time.js')])
  const style = styleFor(process.stdout)
  const show = (tick: number) => `${wallClock(tick, tz)}   ${style.dim(relative(tick, now, tz))}`
  process.stdout.write(`${style.bold(line.describe())}\n\n`)
  for (const tick of ticks) process.stdout.write(`  ${show(tick)}\n`)
  if (ticks.length > 0) return
  const last = line.previous(after + 1)
  process.stdout.write(`  it does not fire any more${last === undefined ? '' : '; the last tick was'}\n`)
  if (last !== undefined) process.stdout.write(`  ${show(last)}\n`)
}

function countOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= 10_000) return count
  throw new InvalidArgumentError('It must be a whole number from 1 to 10000.')
}

function formatOf(text: string): string {
  if (['table', 'json', 'jsonl'].includes(text)) return text
  throw new InvalidArgumentError('Allowed are table, json and jsonl.')
}
