import { existsSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { failure } from '../../core/errors.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { settingSources } from '../settings/config-file.js'
import type { Format } from '../terminal/output.js'

interface NextOptions {
  readonly tz?: string
  readonly count: number
  readonly from?: string
}

export function nextCommand(command: Command): void {
  command
    .argument('<expression>', 'in quotes; or the id of a schedule')
    .allowExcessArguments()
    .option('--tz <zone>', 'IANA time zone of the expression', process.env.BELFRY_TZ)
    .option('-n, --count <count>', 'how many ticks', countOf, 5)
    .option('--from <instant>', 'start here instead of now (ISO 8601, or text of unix seconds)')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
An expression is cron, a nickname, "@every 90m" or "@at 2026-03-01T09:00:00Z";
it needs no service and no store.

Examples:
  belfry next "0 9 * * 1-5" --tz Europe/Berlin
  belfry next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28T00:00:00Z -n 3
  belfry next "@every 90m" -o json
  belfry next digest/eu`,
    )
    .action(async (_, options: NextOptions & Flags, { args }: Command) => {
      const [only, second] = args
      if (only !== undefined && second === undefined && ID.test(only)) return showSchedule(only, options)
      return showNext(args, options, await chosenFormat(options))
    })
}

/** Loads the code for settings only if the output format is set somewhere, because this command must start at once. */
async function chosenFormat(flags: Flags): Promise<Format> {
  const sources = await settingSources(flags)
  const isChosen = (flags.output ?? process.env.BELFRY_OUTPUT ?? sources.file) !== undefined
  return isChosen ? (await import('../settings/operator-settings.js')).formatOf(sources) : 'table'
}

/** One word with a letter in it is an id, not an expression. */
const ID = /^(?!@)(?=.*\p{L})\S+$/u

async function showSchedule(id: string, { count, from, tz, ...flags }: NextOptions & Flags): Promise<void> {
  await withClient(flags, async ({ client, out }) => {
    const schedule = await client.schedules.get(id)
    if (schedule === undefined) throw await (await import('../operator/missing.js')).missingSchedule(client, id)
    const zone = (await import('../../time/zone.js')).zone(tz ?? schedule.timezone ?? 'UTC').name
    const given = from === undefined ? {} : { from }
    const { description, data } = await client.schedules.preview({ id, count: Math.min(count, 1_000), ...given })
    const ticks = data.map(({ at }) => Date.parse(at))
    if (out.format !== 'table') return printRecords(description, ticks, out.format)
    await printTable(description, ticks, zone, Date.now())
    if (schedule.state === 'paused') out.note('the schedule is paused: none of these ticks fires before belfry resume')
  })
}

async function showNext(words: readonly string[], { tz, count, from }: NextOptions, output: Format): Promise<void> {
  const expression = oneExpression(words)
  const { isEvery } = await import('../../time/nicknames.js')
  const { timeline } = await import('../../time/timeline.js')
  const now = Date.now()
  const after = from === undefined ? now : (await instantOf(from)) - 1
  const spec = tz === undefined || isEvery(expression) ? expression : { cron: expression, timezone: tz }
  const line = timeline(spec, after)
  const ticks = line.between(after, Number.POSITIVE_INFINITY, count)
  if (output !== 'table') return printRecords(line.describe(), ticks, output)
  await printTable(line.describe(), ticks, tz ?? 'UTC', now, line.previous(after + 1))
}

async function instantOf(from: string): Promise<number> {
  const [{ located }, { instantMs }] = await Promise.all([
    import('../../api/located.js'),
    import('../../time/instant.js'),
  ])
  return located('--from', () => instantMs(from))
}

function printRecords(description: string, ticks: readonly number[], output: 'json' | 'jsonl'): void {
  const records = ticks.map((tick) => ({ at: new Date(tick).toISOString(), unix: Math.floor(tick / 1_000) }))
  if (output === 'json') process.stdout.write(`${JSON.stringify({ description, ticks: records }, null, 2)}\n`)
  else for (const record of records) process.stdout.write(`${JSON.stringify(record)}\n`)
}

/** Without quotes the shell splits an expression at its spaces, and expands each `*` to file names. */
function oneExpression(words: readonly string[]): string {
  if (words.length === 1 && words[0] !== undefined) return words[0]
  const expanded = words.some((word) => /[a-z]/i.test(word) && existsSync(word))
  const example = expanded ? '0 9 * * 1-5' : words.join(' ')
  const what = expanded ? ' and expanded * to file names' : ''
  throw failure(
    'OPTION_INVALID',
    `the expression arrived as ${words.length} words: the shell has split it${what}. Quote it, as in belfry next "${example}"`,
  )
}

async function printTable(
  description: string,
  ticks: readonly number[],
  tz: string,
  now: number,
  last?: number,
): Promise<void> {
  const [{ styleFor }, { relative, wallClock }] = await Promise.all([
    import('../terminal/style.js'),
    import('../terminal/human-time.js'),
  ])
  const style = styleFor(process.stdout)
  const show = (tick: number) => `${wallClock(tick, tz)}   ${style.dim(relative(tick, now, tz))}`
  process.stdout.write(`${style.bold(description)}\n\n`)
  for (const tick of ticks) process.stdout.write(`  ${show(tick)}\n`)
  if (ticks.length > 0) return
  process.stdout.write(`  no more ticks${last === undefined ? '' : '; the last tick was'}\n`)
  if (last !== undefined) process.stdout.write(`  ${show(last)}\n`)
}

function countOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= 10_000) return count
  throw new InvalidArgumentError('It must be a whole number from 1 to 10000.')
}
