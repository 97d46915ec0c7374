import type { Command } from 'commander'
import type { ApplyResult, ScheduleFields } from '../../client/index.js'
import { failure, quote } from '../../core/errors.js'
import { type CommandContext, type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { EXIT } from '../terminal/exit.js'
import { quotePath } from '../terminal/quote-path.js'

interface ApplyFlags extends Flags {
  readonly dryRun?: boolean
  readonly prune?: boolean
  readonly prefix?: string
}

export function applyCommand(command: Command): void {
  command
    .argument('<file>', 'YAML or JSON; - is standard input')
    .option('--dry-run', 'only show the changes; exit with 8 if there are any')
    .option('--prune', 'remove schedules under the prefix that are not in the file')
    .option('--prefix <text>', 'the ids that the file covers: "" for all')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
The file maps ids to schedules, and may name its prefix:

  prefix: shop/
  schedules:
    shop/digest:
      cron: 0 9 * * 1-5
      timezone: Europe/Berlin
      job: send-digest

On Postgres and SQLite the whole file is applied, or nothing.

Examples:
  belfry apply schedules.yaml --dry-run
  belfry apply schedules.yaml --prune
  belfry apply all.json --prune --prefix ""`,
    )
    .action((file: string, flags: ApplyFlags) => withClient(flags, (context) => apply(context, file, flags)))
}

async function apply({ client, out }: CommandContext, file: string, flags: ApplyFlags): Promise<void> {
  const { readData } = await import('../settings/data-file.js')
  const { changeLines } = await import('../terminal/change-text.js')
  const { dryRun = false, prune = false } = flags
  const { schedules, prefix: own } = parseFile(await readData(file), file)
  const prefix = flags.prefix ?? own
  if (prune && prefix === undefined) {
    throw failure(
      'OPTION_INVALID',
      '--prune needs a prefix, as an option or in the file: it limits what may be removed',
    )
  }
  const applied = await client.schedules.apply({
    ...{ schedules, dryRun, prune },
    ...(prefix === undefined ? {} : { prefix }),
  })
  out.one(applied, () => applied.changes.flatMap((change) => changeLines(change, out.style)))
  out.note(summaryOf(applied))
  if (dryRun && applied.changes.length > 0) process.exitCode = EXIT.drift
}

function summaryOf({ applied, changes, unchanged }: ApplyResult): string {
  const count = (kind: string) => changes.filter(({ change }) => change === kind).length
  const parts = [
    [count('create'), applied ? 'created' : 'to create'],
    [count('update'), applied ? 'updated' : 'to update'],
    [count('remove'), applied ? 'removed' : 'to remove'],
    [unchanged, 'unchanged'],
  ] as const
  return parts.map(([number, word]) => `${number} ${word}`).join(', ')
}

interface SchedulesFile {
  readonly schedules: Record<string, ScheduleFields>
  readonly prefix?: string
}

/** The file holds schedules by id, or a list of schedules with their ids. The service validates their fields. */
function parseFile(data: unknown, file: string): SchedulesFile {
  if (Array.isArray(data)) return { schedules: byId(data, file) }
  const { schedules, prefix, ...others } = objectOf(data, file)
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) {
    throw failure(
      'OPTION_INVALID',
      `${quotePath(file)} has an unknown ${quote(unknown)}: allowed are prefix and schedules`,
    )
  }
  if (prefix !== undefined && typeof prefix !== 'string') {
    throw failure('OPTION_INVALID', `${quotePath(file)}: prefix is ${quote(prefix)}; it must be text`)
  }
  const given = Array.isArray(schedules)
    ? byId(schedules, file)
    : (objectOf(schedules, file) as SchedulesFile['schedules'])
  return { schedules: given, ...(prefix === undefined ? {} : { prefix }) }
}

function byId(list: readonly unknown[], file: string): SchedulesFile['schedules'] {
  const found: SchedulesFile['schedules'] = {}
  for (const [at, each] of list.entries()) {
    const { id, ...fields } = objectOf(each, file)
    if (typeof id !== 'string') throw failure('OPTION_INVALID', `${quotePath(file)}: schedule ${at + 1} has no id`)
    if (Object.hasOwn(found, id)) throw failure('OPTION_INVALID', `${quotePath(file)} has ${quote(id)} twice`)
    found[id] = fields
  }
  return found
}

function objectOf(value: unknown, file: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw failure('OPTION_INVALID', `${quotePath(file)} holds no schedules: write them by id under schedules:`)
}
