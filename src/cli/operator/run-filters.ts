/** The options that select runs. */
import type { Command } from 'commander'
import { failure, quote } from '../../core/errors.js'
import { nearest } from '../../core/names/nearest.js'
import { RUN_STATES, type RunState } from '../../core/runs/run.js'

export interface RunFlags {
  readonly schedule?: string
  readonly job?: string
  readonly to?: string
  readonly key?: string
  readonly state?: string
}

export function runFilters(command: Command): Command {
  return command
    .option('--schedule <id>', 'only runs of this schedule')
    .option('--job <name>', 'only runs of this job')
    .option('--to <sink>', 'only deliveries to this sink')
    .option('--key <name>', 'only runs with this exclusive key')
    .option('--state <list>', 'only runs in these states, such as failed,skipped')
}

export function filtersOf({ schedule, job, to, key, state }: RunFlags) {
  return {
    ...(schedule === undefined ? {} : { schedule }),
    ...(job === undefined ? {} : { job }),
    ...(to === undefined ? {} : { to }),
    ...(key === undefined ? {} : { key }),
    ...(state === undefined ? {} : { state: state.split(',').map((each) => stateOf(each.trim())) }),
  }
}

function stateOf(text: string): RunState {
  const found = RUN_STATES.find((each) => each === text)
  if (found !== undefined) return found
  const meant = nearest(text, RUN_STATES)
  const hint = meant === undefined ? `allowed are ${RUN_STATES.join(', ')}` : `did you mean ${meant}?`
  throw failure('OPTION_INVALID', `--state: there is no state ${quote(text)}; ${hint}`)
}
