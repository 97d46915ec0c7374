import type { Command } from 'commander'
import { SCHEDULE_STATES, type ScheduleState } from '../../core/schedule.js'
import { firstOf, type Limited, pageSize, withLimit } from '../operator/list-limit.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

interface LsFlags extends Flags, Limited {
  readonly state?: ScheduleState
  readonly job?: string
  readonly to?: string
}

export function lsCommand(command: Command): void {
  withLimit(command)
    .argument('[prefix]', 'only ids that begin with this')
    .addOption(command.createOption('--state <state>', 'only those that are so').choices(SCHEDULE_STATES))
    .option('--job <name>', 'only those that run this job')
    .option('--to <sink>', 'only those that deliver there')
  onOperator(command)
    .addHelpText(
      'after',
      `
NEXT is how long until the next tick, LAST how the newest run ended, P95 how
long 95 of 100 runs take, by the newest 20.

Examples:
  belfry ls
  belfry ls billing/ --state paused
  belfry ls --job send-digest --all -o jsonl`,
    )
    .action((prefix: string | undefined, flags: LsFlags) => list(prefix, flags))
}

async function list(prefix: string | undefined, flags: LsFlags): Promise<void> {
  await operate(flags, async ({ client, out }) => {
    const { scheduleColumns } = await import('../terminal/schedule-text.js')
    const { state, job, to } = flags
    const schedules = client.schedules.all({
      ...{ recent: true, limit: pageSize(flags, 100) },
      ...(prefix === undefined ? {} : { prefix }),
      ...(state === undefined ? {} : { state }),
      ...(job === undefined ? {} : { job }),
      ...(to === undefined ? {} : { sink: to }),
    })
    await out.list(firstOf(schedules, flags, out), scheduleColumns(Date.now()), 'there are no such schedules')
  })
}
