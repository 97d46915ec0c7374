import type { Command } from 'commander'
import type { ScheduleFields } from '../../client/index.js'
import { LIMITS } from '../../core/defaults.js'
import { failure, quote } from '../../core/errors.js'
import { BACKLOGS, MISSED_POLICIES, ON_FINISH, OVERLAPS } from '../../core/policies.js'
import { KEEPS } from '../../core/runs/run.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { wholeNumber } from '../operator/list-limit.js'
import { quotePath } from '../terminal/quote-path.js'

type Field = Exclude<keyof ScheduleFields, 'at' | 'payload' | 'toOptions' | 'dst'>

/** Options that set the field of the same name, with their value unchanged. */
const PLAIN: readonly Field[] = [
  ...(['cron', 'every', 'timezone', 'startsAt', 'endsAt', 'job', 'to', 'overlap', 'missed', 'backlog'] as const),
  ...(['deadline', 'jitter', 'times', 'priority', 'keep', 'onFinish'] as const),
]

interface PutFlags extends Flags {
  readonly file?: string
  readonly at?: readonly string[]
  readonly payload?: string
  readonly tz?: string
  readonly toOptions?: string
  readonly ifVersion?: number
}

const ANY = wholeNumber(-LIMITS.priority, LIMITS.priority)

export function putCommand(command: Command): void {
  const choice = (flags: string, description: string, choices: readonly string[]) =>
    command.addOption(command.createOption(flags, description).choices(choices))
  command
    .argument('<id>', 'id of the schedule')
    .option('--cron <expression>', 'when: cron, in quotes')
    .option('--every <duration>', 'or: at an interval, such as 15m')
    .option('--at <instant...>', 'or: at these instants')
    .option('--timezone <zone>', 'IANA name, for cron (UTC)')
    .addOption(command.createOption('--tz <zone>', 'the same as --timezone').hideHelp())
    .option('--starts-at <instant>', 'not before this')
    .option('--ends-at <instant>', 'not after this')
    .option('--job <name>', 'what: run this job')
    .option('--to <sink>', 'or: deliver to this sink')
    .option('--to-options <json>', 'options for the sink: topic, headers, URL')
    .option('--payload <json>', 'payload of its runs')
  choice('--overlap <policy>', 'while an earlier run is unfinished', OVERLAPS)
  choice('--missed <policy>', 'ticks that were not recorded in time', MISSED_POLICIES)
  choice('--backlog <what>', 'ticks that no worker started in time', BACKLOGS)
  command
    .option('--deadline <duration>', 'how late a run may start')
    .option('--jitter <duration>', 'spread starts over this long')
    .option('--times <count>', 'how many ticks in all', wholeNumber(1, 1_000_000_000))
    .option('--priority <number>', 'higher starts first', ANY)
  choice('--keep <what>', 'which runs stay in the history', KEEPS)
  choice('--on-finish <what>', 'when no tick is left', ON_FINISH)
  command
    .option('-f, --file <file>', 'fields from YAML or JSON; - is standard input')
    .option('--if-version <number>', 'only over this version; 0: only if new', wholeNumber(0, Number.MAX_SAFE_INTEGER))
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Replaces the whole schedule: fields that are not given get their defaults. An
equal schedule changes nothing.

Examples:
  belfry put digest/eu --cron "0 9 * * 1-5" --timezone Europe/Berlin \\
    --job send-digest --payload '{"region": "eu"}'
  belfry put beat --every 15m --job ping --overlap skip --if-version 0
  belfry put digest/eu -f digest.yaml`,
    )
    .action(put)
}

async function put(id: string, flags: PutFlags): Promise<void> {
  await withClient(flags, async ({ client, out }) => {
    const { scheduleLines } = await import('../terminal/schedule-text.js')
    const { ifVersion } = flags
    const fields = await fieldsOf(id, flags)
    const schedule = await client.schedules.put(id, fields, ifVersion === undefined ? {} : { ifVersion })
    out.one(schedule, () => scheduleLines(schedule, Date.now(), out.style))
  })
}

/** The fields of the file, overridden by flags. The service validates them. */
async function fieldsOf(id: string, flags: PutFlags): Promise<ScheduleFields> {
  const { readData, jsonOf } = await import('../settings/data-file.js')
  const { file, at, payload, toOptions, tz } = flags
  const given = file === undefined ? {} : await readData(file)
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw failure('OPTION_INVALID', `${quotePath(file ?? '-')} holds no fields of a schedule: write cron: …, job: …`)
  }
  const plain = PLAIN.filter((name) => flags[name] !== undefined).map((name) => [name, flags[name]])
  const fields: Record<string, unknown> = {
    ...given,
    ...(tz === undefined ? {} : { timezone: tz }),
    ...Object.fromEntries(plain),
    ...(at === undefined ? {} : { at: at.length === 1 ? at[0] : at }),
    ...(payload === undefined ? {} : { payload: jsonOf(payload, '--payload') }),
    ...(toOptions === undefined ? {} : { toOptions: jsonOf(toOptions, '--to-options') }),
  }
  if (fields.id !== undefined && fields.id !== id) {
    throw failure('OPTION_INVALID', `${quotePath(file ?? '-')} has the id ${quote(fields.id)}, not ${quote(id)}`)
  }
  delete fields.id
  return fields
}
