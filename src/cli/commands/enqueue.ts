import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { failure } from '../../core/errors.js'
import { type CommandContext, type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { makeRun } from '../operator/enqueued-run.js'

interface EnqueueFlags extends Flags {
  readonly to?: string
  readonly toOptions?: string
  readonly payload?: string
  readonly in?: string
  readonly at?: string
  readonly key?: string
  readonly wait?: string | true
}

export function enqueueCommand(command: Command): void {
  command
    .argument('[job]', 'name of the job')
    .option('--to <sink>', 'deliver to this sink, instead of a job')
    .option('--to-options <json>', 'options for the sink: topic, headers, URL')
    .option('--payload <json>', 'what the handler or the sink gets (null)')
    .option('--in <duration>', 'start after this long')
    .option('--at <instant>', 'start then (ISO 8601)')
    .option('--key <key>', 'at most one unfinished run of it has this key')
    .option('--wait [duration]', 'wait until the run has ended, at most this long')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
An instance that has defined the job, or that has the sink, runs it. With --wait
it exits with 0 if the run succeeded, 1 if it did not, and 6 if it took longer.

Examples:
  belfry enqueue send-digest --payload '{"region": "eu"}'
  belfry enqueue clean-up --in 2h --key clean-up
  belfry enqueue send-digest --payload '{"region": "eu"}' --wait 5m
  belfry enqueue --to log --payload '{"hello": "world"}'`,
    )
    .action((job: string | undefined, flags: EnqueueFlags) =>
      withClient(flags, (context) => enqueue(context, job, flags)),
    )
}

async function enqueue(context: CommandContext, job: string | undefined, flags: EnqueueFlags): Promise<void> {
  const { jsonOf } = await import('../settings/data-file.js')
  const { to, toOptions, wait, payload, in: delay, at, key } = flags
  const name = job ?? to
  if (name === undefined || (job !== undefined && to !== undefined)) {
    throw failure('OPTION_INVALID', 'give the name of a job, or a sink as --to')
  }
  if (toOptions !== undefined && to === undefined) throw failure('OPTION_INVALID', '--to-options needs --to')
  const run = {
    idempotencyKey: randomUUID(),
    ...(payload === undefined ? {} : { payload: jsonOf(payload, '--payload') as null }),
    ...(delay === undefined ? {} : { in: delay }),
    ...(at === undefined ? {} : { at }),
    ...(key === undefined ? {} : { key }),
  }
  const choice = toOptions === undefined ? {} : { toOptions: jsonOf(toOptions, '--to-options') as null }
  const { jobs, sinks } = context.client
  await makeRun(context, name, wait, (patience) =>
    to === undefined
      ? jobs.enqueue(name, { ...run, ...patience })
      : sinks.enqueue(to, { ...run, ...choice, ...patience }),
  )
}
