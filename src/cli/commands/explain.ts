import type { Command } from 'commander'
import { located } from '../../api/located.js'
import { failure, quote } from '../../core/errors.js'
import { missingSchedule } from '../operator/missing.js'
import { type Flags, onOperator, operate } from '../operator/on-operator.js'

export function explainCommand(command: Command): void {
  command.argument('<id>', 'of the schedule').option('--at <instant>', 'ISO 8601, or 09:00: the last time that it was')
  onOperator(command)
    .addHelpText(
      'after',
      `
Without --at it explains the newest tick that is past. A time without an offset
is meant in the schedule's own zone.

Examples:
  belfry explain digest/eu
  belfry explain digest/eu --at 09:00
  belfry explain digest/eu --at 2026-03-02T09:00
  belfry explain digest/eu --at 2026-03-02T08:00:00Z -o json`,
    )
    .action((id: string, { at, ...flags }: Flags & { readonly at?: string }) =>
      operate(flags, async ({ client, out }) => {
        const { wallClock } = await import('../terminal/human-time.js')
        const schedule = await client.schedules.get(id)
        // What is gone may still be explained: its skips outlive it.
        if (schedule === undefined && at === undefined) throw await missingSchedule(client, id)
        const zone = schedule?.timezone ?? 'UTC'
        const instant = at === undefined ? undefined : await instantOf(at, zone)
        const explanation = await client.schedules.explain(id, instant)
        if (explanation.status === 'unknown-schedule') throw await missingSchedule(client, id)
        out.one(explanation, () => [
          `${out.style.bold(wallClock(Date.parse(explanation.at), zone))}  ${explanation.status}`,
          explanation.text,
          ...(explanation.run === undefined ? [] : [out.style.dim(`belfry run ${explanation.run.id} shows more`)]),
        ])
      }),
    )
}

const TIME_OF_DAY = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/

/** A time of day is when it was last so there; a time without an offset is one there. */
async function instantOf(text: string, zone: string): Promise<string> {
  const [, hour, minute, second = '0'] = TIME_OF_DAY.exec(text) ?? []
  const { instantMs, timeline } = await import('../../time/index.js')
  if (hour === undefined || minute === undefined) {
    const { zone: zoneOf } = await import('../../time/zone.js')
    return new Date(located('--at', () => instantMs(text, zoneOf(zone)))).toISOString()
  }
  const line = timeline({ cron: `${Number(second)} ${Number(minute)} ${Number(hour)} * * *`, timezone: zone })
  const last = line.previous(Date.now() + 1)
  if (last === undefined) throw failure('OPTION_INVALID', `--at: it has never been ${quote(text)} there`)
  return new Date(last).toISOString()
}
