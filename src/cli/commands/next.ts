import { existsSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { failure } from '../../core/errors.js'
import type { ClockChange } from '../../time/clock-changes.js'
import { DST_GAPS, DST_REPEATS, type DstRule } from '../../time/cron/cron.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { settingSources } from '../settings/config-file.js'
import { writeLine } from '../terminal/clean-text.js'
import type { Format } from '../terminal/output.js'

interface NextOptions {
  readonly tz?: string
  readonly timezone?: string
  readonly dst?: DstRule
  readonly count: number
  readonly from?: string
}

export function nextCommand(command: Command): void {
  command
    .argument('<expression>', 'in quotes; or the id of a schedule')
    .allowExcessArguments()
    .option('--tz <zone>', 'IANA time zone of the expression, or an offset such as +05:30', process.env.BELFRY_TZ)
    .addOption(new Option('--timezone <zone>', 'the same as --tz').hideHelp())
    .option(
      '--dst <rules>',
      'try other rules for clock changes: shift or skip, first or both, such as skip,both',
      dstOf,
    )
    .option('-n, --count <count>', 'how many ticks', countOf, 5)
    .option('--from <instant>', 'start here instead of now (ISO 8601, local to --tz without an offset)')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
An expression is cron, a nickname, "@every 90m" or "@at 2026-03-01T09:00:00Z";
it needs no service and no store.

Examples:
  belfry next "0 9 * * 1-5" --tz Europe/Berlin
  belfry next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28T00:00 -n 3
  belfry next "30 2 * * *" --tz Europe/Berlin --from 2026-10-24T00:00 --dst both
  belfry next "@every 90m" -o json
  belfry next digest/eu`,
    )
    .action(async (_, given: NextOptions & Flags, { args }: Command) => {
      const { timezone, ...rest } = given
      const options = timezone === undefined ? rest : { ...rest, tz: timezone }
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

async function showSchedule(id: string, { count, from, tz, dst, ...flags }: NextOptions & Flags): Promise<void> {
  if (dst !== undefined) throw failure('OPTION_INVALID', '--dst is for an expression: a schedule has rules of its own')
  await withClient(flags, async ({ client, out }) => {
    const schedule = await client.schedules.get(id)
    if (schedule === undefined) throw await (await import('../operator/missing.js')).missingSchedule(client, id)
    const zone = (await import('../../time/zone.js')).zone(tz ?? schedule.timezone ?? 'UTC').name
    const given = from === undefined ? {} : { from }
    const { description, data } = await client.schedules.preview({ id, count: Math.min(count, 1_000), ...given })
    const ticks = data.map(({ at }) => Date.parse(at))
    const shown = { description, ticks, zone, changes: [] }
    if (out.format !== 'table') return printRecords(shown, out.format)
    await printTable(shown, Date.now())
    if (schedule.state === 'paused') out.note('the schedule is paused: none of these ticks fires before belfry resume')
  })
}

/** Ticks, and what clock changes did to them. */
interface Shown {
  readonly description: string
  readonly ticks: readonly number[]
  readonly zone: string
  readonly changes: readonly ClockChange[]
}

async function showNext(
  words: readonly string[],
  { tz, dst, count, from }: NextOptions,
  output: Format,
): Promise<void> {
  const expression = oneExpression(words)
  const [{ isEvery }, { timeline }, { zone }, { clockChanges }] = await Promise.all([
    import('../../time/cron/nicknames.js'),
    import('../../time/timeline.js'),
    import('../../time/zone.js'),
    import('../../time/clock-changes.js'),
  ])
  const now = Date.now()
  const after = from === undefined ? now : (await instantOf(from, tz)) - 1
  const place = tz === undefined || isEvery(expression) ? {} : { timezone: tz }
  const spec = { cron: expression, ...place, ...(dst === undefined ? {} : { dst }) }
  const line = timeline(spec, after)
  const ticks = line.between(after, Number.POSITIVE_INFINITY, count)
  const changes = line.kind === 'cron' ? clockChanges(spec, after, ticks) : []
  const shown = { description: line.describe(), ticks, zone: zone(tz ?? 'UTC').name, changes }
  if (output !== 'table') return printRecords(shown, output)
  await printTable(shown, now, line.previous(after + 1))
}

async function instantOf(from: string, tz: string | undefined): Promise<number> {
  const [{ located }, { instantMs }, { zone }] = await Promise.all([
    import('../../api/located.js'),
    import('../../time/instant.js'),
    import('../../time/zone.js'),
  ])
  return located('--from', () => instantMs(from, tz === undefined ? undefined : zone(tz)))
}

async function printRecords({ description, ticks, zone, changes }: Shown, output: 'json' | 'jsonl'): Promise<void> {
  const { localTime } = await import('../terminal/human-time.js')
  const records = ticks.map((tick) => {
    const note = changes.find(({ at, kind }) => at === tick && kind !== 'dropped')
    return {
      ...{ at: new Date(tick).toISOString(), unix: Math.floor(tick / 1_000) },
      ...{ ...localTime(tick, zone), timezone: zone },
      ...(note === undefined ? {} : { clockChange: note.kind, named: namedTime(note) }),
    }
  })
  const dropped = changes.filter(({ kind }) => kind === 'dropped').map((change) => ({ named: namedTime(change) }))
  if (output === 'json')
    writeLine(process.stdout, `${JSON.stringify({ description, ticks: records, dropped }, null, 2)}`)
  else for (const record of records) writeLine(process.stdout, `${JSON.stringify(record)}`)
}

/** The local time that the expression names: "2026-03-29T02:30:00". */
function namedTime({ local }: ClockChange): string {
  return new Date(local).toISOString().slice(0, 19)
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

async function printTable({ description, ticks, zone, changes }: Shown, now: number, last?: number): Promise<void> {
  const [{ styleFor }, { relative, wallClock }] = await Promise.all([
    import('../terminal/style.js'),
    import('../terminal/human-time.js'),
  ])
  const style = styleFor(process.stdout)
  const show = (tick: number) => `${wallClock(tick, zone)}   ${style.dim(relative(tick, now, zone))}`
  writeLine(process.stdout, `${style.bold(description)}\n`)
  const rest = [...changes]
  for (const tick of ticks) {
    for (; rest[0] !== undefined && rest[0].at < tick; rest.shift())
      writeLine(process.stdout, `  ${style.yellow(noteOf(rest[0]))}`)
    const note = rest[0]?.at === tick ? rest.shift() : undefined
    process.stdout.write(`  ${show(tick)}${note === undefined ? '' : `   ${style.yellow(noteOf(note))}`}\n`)
  }
  if (ticks.length > 0) return
  writeLine(process.stdout, `  no more ticks${last === undefined ? '' : '; the last tick was'}`)
  if (last !== undefined) writeLine(process.stdout, `  ${show(last)}`)
}

const NOTES: Readonly<Record<ClockChange['kind'], (time: string) => string>> = {
  moved: (time) => `moved: the clock skips ${time}`,
  first: (time) => `the clock shows ${time} twice: this is the first`,
  second: (time) => `the clock shows ${time} twice: this is the second`,
  dropped: (time) => `no tick at ${time}: the clock skips it`,
}

function noteOf(change: ClockChange): string {
  const [date = '', time = ''] = namedTime(change).split('T')
  const short = time.replace(/:00$/, '')
  return NOTES[change.kind](change.kind === 'dropped' ? `${date} ${short}` : short)
}

function dstOf(text: string): DstRule {
  const words = text.split(',')
  const gap = DST_GAPS.find((word) => words.includes(word))
  const repeat = DST_REPEATS.find((word) => words.includes(word))
  const known = [gap, repeat].filter((word) => word !== undefined)
  if (known.length === words.length)
    return { ...(gap === undefined ? {} : { gap }), ...(repeat === undefined ? {} : { repeat }) }
  throw new InvalidArgumentError('Write shift or skip, first or both, or one of each: skip,both.')
}

function countOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= 10_000) return count
  throw new InvalidArgumentError('It must be a whole number from 1 to 10000.')
}
