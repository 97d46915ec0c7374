import type { Command } from 'commander'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { durationText } from '../../time/duration.js'
import { wholeNumber } from '../operator/list-limit.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

export interface LockExecFlags extends Flags {
  readonly ttl: string
  readonly wait?: string
  readonly permits?: number
  readonly killAfter: string
}

export function lockCommand(command: Command): void {
  const exec = command.command('exec').description('run a program while holding a lock')
  exec
    .argument('<name>', 'of the lock')
    .argument('<command...>', 'the program and its arguments, after --')
    .option('--ttl <duration>', 'how long it lasts without renewal', durationText(DEFAULTS.lock.ttlMs))
    .option('--wait <duration>', 'how long to wait for it; "forever"')
    .option('--permits <count>', `how many may hold it (${DEFAULTS.lock.permits})`, wholeNumber(1, LIMITS.permits))
    .option('--kill-after <duration>', 'SIGKILL so long after SIGTERM, at the most', '5s')
  onOperator(exec)
    .addHelpText(
      'after',
      `
The program finds BELFRY_LOCK_NAME and BELFRY_LOCK_TOKEN in its environment. The
token only grows: let what it writes to refuse an older one. When the lock is
lost, its whole process group gets SIGTERM and then SIGKILL, before anybody
else has the lock.

Its exit code is passed on; 128 + n when signal n ended it, 126 and 127 when it
could not be started. 4 means that somebody else has the lock, 6 that waiting
for it took too long, 1 that the lock was lost and the program ended with 0.

Examples:
  belfry lock exec nightly-backup -- /usr/local/bin/backup --full
  belfry lock exec deploy --wait 10m --ttl 30s -- ./deploy.sh
  belfry lock exec api-quota --permits 5 --wait forever -- ./crawl`,
    )
    .action((name: string, words: readonly string[], flags: LockExecFlags) =>
      operate(flags, async ({ client }) => {
        const { lockExec } = await import('../lock/lock-exec.js')
        process.exitCode = await lockExec(client, name, words, flags)
      }),
    )
}
