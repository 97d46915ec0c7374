import type { Command } from 'commander'
import type { ApplyResult, ScheduleFields } from '../../client/index.js'
import { failure, quote } from '../../core/errors.js'
import { type Desk, type Flags, onOperator, operate } from '../operator/on-operator.js'
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
    .option('--dry-run', 'only show what would change; exit 8 if anything would')
    .option('--prune', 'remove what is under the prefix and not in the file')
    .option('--prefix <text>', 'what the file is about, all of it: "" for everything')
  onOperator(command)
    .addHelpText(
      'after',
      `
The file has schedules by their ids, and may say its own prefix:

  prefix: shop/
  schedules:
    shop/digest:
      cron: 0 9 * * 1-5
      timezone: Europe/Berlin
      job: send-digest

On Postgres and SQLite all of it is applied, or nothing.

Examples:
  belfry apply schedules.yaml --dry-run
  belfry apply schedules.yaml --prune
  belfry apply all.json --prune --prefix ""`,
    )
    .action((file: string, flags: ApplyFlags) => operate(flags, (desk) => apply(desk, file, flags)))
}

async function apply({ client, out }: Desk, file: string, flags: ApplyFlags): Promise<void> {
  const { readData } = await import('../settings/data-file.js')
  const { changeLines } = await import('../terminal/change-text.js')
  const { dryRun = false, prune = false } = flags
  const { schedules, prefix: own } = wantedOf(await readData(file), file)
  const prefix = flags.prefix ?? own
  if (prune && prefix === undefined) {
    throw failure('OPTION_INVALID', '--prune needs a prefix, here or in the file: it says what may be removed')
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

interface Wanted {
  readonly schedules: Record<string, ScheduleFields>
  readonly prefix?: string
}

/** By their ids, or as a list with an id in each; what is wrong with one of them the service says. */
function wantedOf(data: unknown, file: string): Wanted {
  if (Array.isArray(data)) return { schedules: byId(data, file) }
  const { schedules, prefix, ...others } = objectOf(data, file)
  const [stranger] = Object.keys(others)
  if (stranger !== undefined) {
    throw failure('OPTION_INVALID', `${quotePath(file)} has a ${quote(stranger)}: allowed are prefix and schedules`)
  }
  if (prefix !== undefined && typeof prefix !== 'string') {
    throw failure('OPTION_INVALID', `${quotePath(file)}: prefix is ${quote(prefix)}; it must be text`)
  }
  const given = Array.isArray(schedules) ? byId(schedules, file) : (objectOf(schedules, file) as Wanted['schedules'])
  return { schedules: given, ...(prefix === undefined ? {} : { prefix }) }
}

function byId(list: readonly unknown[], file: string): Wanted['schedules'] {
  const found: Wanted['schedules'] = {}
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
  throw failure('OPTION_INVALID', `${quotePath(file)} holds no schedules: write them by their ids, under schedules:`)
}
