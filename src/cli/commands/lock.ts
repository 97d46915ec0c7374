import type { Command } from 'commander'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { durationText } from '../../time/duration.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { wholeNumber } from '../operator/list-limit.js'

export interface LockExecFlags extends Flags {
  readonly ttl: string
  readonly wait?: string
  readonly permits?: number
  readonly killAfter: string
}

export function lockCommand(command: Command): void {
  const exec = command.command('exec').description('run a program while holding a lock')
  exec
    .argument('<name>', 'name of the lock')
    .argument('<command...>', 'the program and its arguments, after --')
    .option('--ttl <duration>', 'the lock expires after this long without renewal', durationText(DEFAULTS.lock.ttlMs))
    .option('--wait <duration>', 'wait this long for the lock; "forever"')
    .option(
      '--permits <count>',
      `how many may hold it at once (${DEFAULTS.lock.permits})`,
      wholeNumber(1, LIMITS.permits),
    )
    .option('--kill-after <duration>', 'SIGKILL at most this long after SIGTERM', '5s')
  withClientOptions(exec)
    .addHelpText(
      'after',
      `
The program gets BELFRY_LOCK_NAME and BELFRY_LOCK_TOKEN in its environment. The
token only grows: let the systems that it writes to refuse an older one. When
the lock is lost, its process group gets SIGTERM and then SIGKILL, before
another holder gets the lock.

Its exit code is passed on; 128 + n when signal n ended it, 126 and 127 when it
could not be started. 4 means that another holder has the lock, 6 that the wait
for it timed out, 1 that the lock was lost although the program ended with 0.

Examples:
  belfry lock exec nightly-backup -- /usr/local/bin/backup --full
  belfry lock exec deploy --wait 10m --ttl 30s -- ./deploy.sh
  belfry lock exec api-quota --permits 5 --wait forever -- ./crawl`,
    )
    .action((name: string, words: readonly string[], flags: LockExecFlags) =>
      withClient(flags, async ({ client }) => {
        const { lockExec } = await import('../lock/lock-exec.js')
        process.exitCode = await lockExec(client, name, words, flags)
      }),
    )
}
