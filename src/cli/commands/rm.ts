import type { Command } from 'commander'
import { failure, quote } from '../../core/errors.js'
import { wholeNumber } from '../operator/list-limit.js'
import { eachSchedule, type ManyFlags, withIds } from '../operator/many-schedules.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

interface RmFlags extends Flags, ManyFlags {
  readonly yes?: boolean
  readonly ifVersion?: number
}

export function rmCommand(command: Command): void {
  withIds(command, 'remove')
    .option('--yes', 'yes, all of them: needed with --prefix')
    .option('--if-version <number>', 'only if it is of this version', wholeNumber(1, Number.MAX_SAFE_INTEGER))
  onOperator(command)
    .addHelpText(
      'after',
      `
What runs goes on; what never started is skipped.

Examples:
  belfry rm digest/eu
  belfry rm digest/eu --if-version 42
  belfry rm --prefix test/ --yes`,
    )
    .action((ids: readonly string[], flags: RmFlags) => {
      const { prefix, yes = false, ifVersion } = flags
      if (prefix !== undefined && !yes) {
        throw failure('OPTION_INVALID', `--prefix ${quote(prefix)} may be many: add --yes to remove them all`)
      }
      return operate(flags, (desk) =>
        eachSchedule(desk, ids, flags, undefined, async (id) => {
          await desk.client.schedules.remove(id, ifVersion === undefined ? {} : { ifVersion })
          return { id, outcome: 'removed' }
        }),
      )
    })
}
