import type { Command } from 'commander'
import { located } from '../../api/located.js'
import { ServiceError } from '../../client/service-error.js'
import { failure, quote } from '../../core/errors.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { missingSchedule } from '../operator/missing.js'

export function explainCommand(command: Command): void {
  command
    .argument('<id>', 'id of the schedule')
    .option('--at <instant>', 'ISO 8601, or 09:00 for the most recent 09:00')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Without --at it explains the newest past tick. A time without an offset is
local to the schedule's time zone.

Examples:
  belfry explain digest/eu
  belfry explain digest/eu --at 09:00
  belfry explain digest/eu --at 2026-03-02T09:00
  belfry explain digest/eu --at 2026-03-02T08:00:00Z -o json`,
    )
    .action((id: string, { at, ...flags }: Flags & { readonly at?: string }) =>
      withClient(flags, async ({ client, out }) => {
        const { wallClock } = await import('../terminal/human-time.js')
        const { cleanText } = await import('../terminal/clean-text.js')
        const schedule = await client.schedules.get(id)
        // A removed schedule can still be explained at an instant: its skips outlive it.
        if (schedule === undefined && at === undefined) throw await missingSchedule(client, id)
        const zone = schedule?.timezone ?? 'UTC'
        const instant = at === undefined ? undefined : await instantOf(at, zone)
        const explanation = await client.schedules.explain(id, instant).catch(async (error: unknown) => {
          const isMissing = error instanceof ServiceError && error.code === 'SCHEDULE_NOT_FOUND'
          throw isMissing ? await missingSchedule(client, id) : error
        })
        if (explanation.status === 'unknown-schedule') throw await missingSchedule(client, id)
        out.one(explanation, () => [
          `${out.style.bold(wallClock(Date.parse(explanation.at), zone))}  ${explanation.status}`,
          cleanText(explanation.text),
          ...(explanation.run === undefined ? [] : [out.style.dim(`belfry run ${explanation.run.id} shows more`)]),
        ])
      }),
    )
}

const TIME_OF_DAY = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/

/** A time of day means its most recent occurrence in the zone; a time without an offset is local to the zone. */
async function instantOf(text: string, zone: string): Promise<string> {
  const [, hour, minute, second = '0'] = TIME_OF_DAY.exec(text) ?? []
  const { instantMs, timeline } = await import('../../time/index.js')
  if (hour === undefined || minute === undefined) {
    const { zone: zoneOf } = await import('../../time/zone.js')
    return new Date(located('--at', () => instantMs(text, zoneOf(zone)))).toISOString()
  }
  const line = timeline({ cron: `${Number(second)} ${Number(minute)} ${Number(hour)} * * *`, timezone: zone })
  const last = line.previous(Date.now() + 1)
  if (last === undefined) throw failure('OPTION_INVALID', `--at: ${quote(text)} has never occurred in this time zone`)
  return new Date(last).toISOString()
}
