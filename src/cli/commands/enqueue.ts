import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { makeRun } from '../operator/enqueued-run.js'

interface EnqueueFlags extends Flags {
  readonly payload?: string
  readonly in?: string
  readonly at?: string
  readonly key?: string
  readonly wait?: string | true
}

export function enqueueCommand(command: Command): void {
  command
    .argument('<job>', 'name of the job')
    .option('--payload <json>', 'what the handler gets (null)')
    .option('--in <duration>', 'start after this long')
    .option('--at <instant>', 'start then (ISO 8601)')
    .option('--key <key>', 'at most one unfinished run of the job has this key')
    .option('--wait [duration]', 'wait until the run has ended, at most this long')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
An instance that has defined the job runs it. With --wait it exits with 0 if the
run succeeded, 1 if it did not, and 6 if it took longer.

Examples:
  belfry enqueue send-digest --payload '{"region": "eu"}'
  belfry enqueue clean-up --in 2h --key clean-up
  belfry enqueue send-digest --payload '{"region": "eu"}' --wait 5m`,
    )
    .action((job: string, { wait, payload, in: delay, at, key, ...flags }: EnqueueFlags) =>
      withClient(flags, async (context) => {
        const { jsonOf } = await import('../settings/data-file.js')
        await makeRun(context, job, wait, (patience) =>
          context.client.jobs.enqueue(job, {
            idempotencyKey: randomUUID(),
            ...(payload === undefined ? {} : { payload: jsonOf(payload, '--payload') as null }),
            ...(delay === undefined ? {} : { in: delay }),
            ...(at === undefined ? {} : { at }),
            ...(key === undefined ? {} : { key }),
            ...patience,
          }),
        )
      }),
    )
}
