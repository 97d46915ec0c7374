import type { Command } from 'commander'
import { failure, quote } from '../../core/errors.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { wholeNumber } from '../operator/list-limit.js'
import { eachSchedule, type ManyFlags, withIds } from '../operator/many-schedules.js'

interface RmFlags extends Flags, ManyFlags {
  readonly yes?: boolean
  readonly ifVersion?: number
}

export function rmCommand(command: Command): void {
  withIds(command, 'remove')
    .option('--yes', 'confirm; required with --prefix')
    .option('--if-version <number>', 'only if it has this version', wholeNumber(1, Number.MAX_SAFE_INTEGER))
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Running runs continue; runs that never started are skipped.

Examples:
  belfry rm digest/eu
  belfry rm digest/eu --if-version 42
  belfry rm --prefix test/ --yes`,
    )
    .action((ids: readonly string[], flags: RmFlags) => {
      const { prefix, yes = false, ifVersion } = flags
      if (prefix !== undefined && !yes) {
        throw failure(
          'OPTION_INVALID',
          `--prefix ${quote(prefix)} may match many schedules: add --yes to remove them all`,
        )
      }
      return withClient(flags, (context) =>
        eachSchedule(context, ids, flags, async (id) => {
          await context.client.schedules.remove(id, ifVersion === undefined ? {} : { ifVersion })
          return { id, outcome: 'removed' }
        }),
      )
    })
}
