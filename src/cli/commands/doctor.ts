import type { Command } from 'commander'
import type { DoctorReport } from '../../client/index.js'
import { BelfryError } from '../../core/errors.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { settingSources } from '../settings/config-file.js'
import { formatOf } from '../settings/operator-settings.js'
import { cleanText } from '../terminal/clean-text.js'
import { EXIT } from '../terminal/exit.js'
import { Output } from '../terminal/output.js'
import type { Style } from '../terminal/style.js'

export function doctorCommand(command: Command): void {
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Checks the store and its schema, indexes and bloat, clocks, zone data, jobs
without a live instance, keys without a holder, and lateness. It changes
nothing, and says how to fix each finding. It exits with 1 on a finding.

Examples:
  belfry doctor --store postgres://app@db.example/app
  belfry doctor -o json`,
    )
    .action(examine)
}

async function examine(flags: Flags): Promise<void> {
  try {
    await withClient(flags, async ({ client, out }) => report(await client.doctor(), out))
  } catch (error) {
    // A store whose schema cannot be used fails on opening: that is a finding too.
    const message = error instanceof BelfryError && error.code === 'STORE_INVALID' ? error.message : undefined
    if (message === undefined) throw error
    const [, what = message, fix = 'see docs/cli.md'] = /^(.*?): (.*)$/s.exec(message) ?? []
    const checks = [{ name: 'store', about: 'it cannot be used as it is', findings: [{ what, fix }] }]
    report({ ok: false, checks }, new Output(formatOf(await settingSources(flags))))
  }
}

function report(found: DoctorReport, out: Output): void {
  out.one(found, () => found.checks.flatMap((check) => checkLines(check, out.style)))
  if (found.ok) return
  const count = found.checks.reduce((sum, { findings }) => sum + findings.length, 0)
  out.note(count === 1 ? 'one finding' : `${count} findings`)
  process.exitCode = EXIT.failure
}

function checkLines({ name, about, findings }: DoctorReport['checks'][number], style: Style): string[] {
  const isOk = findings.length === 0
  const mark = isOk ? style.green('ok') : style.red('!!')
  return [
    `${mark}  ${name.padEnd(9)}  ${style.dim(cleanText(about))}`,
    ...findings.flatMap(({ what, fix }) => [`    ${cleanText(what)}`, `    ${style.cyan('fix:')} ${cleanText(fix)}`]),
  ]
}
