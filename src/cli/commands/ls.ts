import type { Command } from 'commander'
import { SCHEDULE_STATES, type ScheduleState } from '../../core/schedules/schedule.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { firstOf, type Limited, pageSize, withLimit } from '../operator/list-limit.js'

interface LsFlags extends Flags, Limited {
  readonly state?: ScheduleState
  readonly job?: string
  readonly to?: string
}

export function lsCommand(command: Command): void {
  withLimit(command)
    .argument('[prefix]', 'only ids that begin with this')
    .addOption(command.createOption('--state <state>', 'only schedules in this state').choices(SCHEDULE_STATES))
    .option('--job <name>', 'only schedules that run this job')
    .option('--to <sink>', 'only schedules that deliver to this sink')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
NEXT is the time until the next tick, LAST the outcome of the newest run, P95
the 95th percentile of the durations of the newest 20.

Examples:
  belfry ls
  belfry ls billing/ --state paused
  belfry ls --job send-digest --all -o jsonl`,
    )
    .action((prefix: string | undefined, flags: LsFlags) => list(prefix, flags))
}

async function list(prefix: string | undefined, flags: LsFlags): Promise<void> {
  await withClient(flags, async ({ client, out }) => {
    const { scheduleColumns } = await import('../terminal/schedule-text.js')
    const { state, job, to } = flags
    const schedules = client.schedules.all({
      ...{ recent: true, limit: pageSize(flags, 100) },
      ...(prefix === undefined ? {} : { prefix }),
      ...(state === undefined ? {} : { state }),
      ...(job === undefined ? {} : { job }),
      ...(to === undefined ? {} : { to }),
    })
    await out.list(firstOf(schedules, flags, out), scheduleColumns(Date.now()), 'there are no such schedules')
  })
}
