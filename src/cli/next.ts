import { Command, InvalidArgumentError } from 'commander'

interface NextOptions {
  readonly tz?: string
  readonly count: number
  readonly from?: string
  readonly output: 'table' | 'json' | 'jsonl'
}

export function nextCommand(): Command {
  return new Command('next')
    .description('show when an expression fires next')
    .argument('<expression>', 'cron, a nickname, "@every 90m" or "@at 2026-03-01T09:00:00Z"')
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
    .action(showNext)
}

async function showNext(expression: string, { tz, count, from, output }: NextOptions): Promise<void> {
  const { instantMs, timeline } = await import('../time/index.js')
  const now = Date.now()
  const after = from === undefined ? now : instantMs(from) - 1
  const spec =
    tz === undefined || expression.trim().startsWith('@every') ? expression : { cron: expression, timezone: tz }
  const line = timeline(spec, after)
  const ticks = line.between(after, Number.POSITIVE_INFINITY, count)
  if (output === 'table') return printTable(line.describe(), ticks, tz ?? 'UTC', now)
  const records = ticks.map((tick) => ({ at: new Date(tick).toISOString(), unix: Math.floor(tick / 1_000) }))
  if (output === 'json')
    process.stdout.write(`${JSON.stringify({ description: line.describe(), ticks: records }, null, 2)}\n`)
  else for (const record of records) process.stdout.write(`${JSON.stringify(record)}\n`)
}

async function printTable(description: string, ticks: readonly number[], tz: string, now: number): Promise<void> {
  const [{ styleFor }, { relative, wallClock }] = await Promise.all([import('./style.js'), import('./human-time.js')])
  const style = styleFor(process.stdout)
  process.stdout.write(`${style.bold(description)}\n\n`)
  for (const tick of ticks) process.stdout.write(`  ${wallClock(tick, tz)}   ${style.dim(relative(tick - now))}\n`)
  if (ticks.length === 0) process.stdout.write('  never again: no tick is left\n')
}

function countOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= 10_000) return count
  throw new InvalidArgumentError('a whole number from 1 to 10000 is needed.')
}

function formatOf(text: string): string {
  if (['table', 'json', 'jsonl'].includes(text)) return text
  throw new InvalidArgumentError('allowed are table, json and jsonl.')
}
