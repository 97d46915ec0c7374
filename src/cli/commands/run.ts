import type { Command } from 'commander'
import { failure, quote } from '../../core/errors.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'

export function runCommand(command: Command): void {
  withClientOptions(command.argument('<id>', 'id of the run'))
    .addHelpText(
      'after',
      `
Examples:
  belfry run 1842
  belfry run 1842 -o json`,
    )
    .action((id: string, flags: Flags) =>
      withClient(flags, async ({ client, out }) => {
        const { runLines } = await import('../terminal/run-text.js')
        const { cleanText } = await import('../terminal/clean-text.js')
        const run = await client.runs.get(id)
        if (run === undefined) throw missingRun(id)
        const log = await client.runs.log(id)
        out.one({ ...run, ...(log === undefined ? {} : { log }) }, () => [
          ...runLines(run, out.style),
          ...(run.error?.stack === undefined ? [] : ['', cleanText(run.error.stack.trimEnd())]),
          ...(log === undefined
            ? []
            : ['', out.style.dim(`log of attempt ${log.attempt}:`), cleanText(log.text.trimEnd())]),
        ])
      }),
    )
}

export function missingRun(id: string) {
  const why = 'it never existed, or was pruned; belfry runs lists runs'
  return failure('RUN_NOT_FOUND', `there is no run ${quote(id)}: ${why}`)
}
