/** The doctor's check of writes that the store has lost, as far as instances have noticed it. */
import type { Check, Finding } from '../../core/diagnosis.js'
import { LOST_WRITES_KIND, type LostWritesReport, reportedLostWrites } from '../../core/records/lost-writes.js'
import { eventId } from '../../core/runs/event.js'
import type { Store } from '../../core/store.js'
import { isoText } from '../../time/instant.js'

/** How many reports and runs the check reads. */
const MAX_READ = 1_000
const MAX_NAMED = 5

export async function lostWrites(store: Store): Promise<Check> {
  const { items } = await store.records.list({ kind: LOST_WRITES_KIND, limit: MAX_READ })
  const reports = merged(items.flatMap((record) => reportedLostWrites(record) ?? []))
  if (reports.length === 0) return { name: 'lost writes', about: 'none noticed', findings: [] }
  const { items: runs } = await store.runs.list({ limit: MAX_READ, look: MAX_READ })
  const now = await store.now()
  const findings = reports.map(({ from, until, process }): Finding => {
    const ticks = runs.filter(({ origin, tick = 0 }) => origin === 'tick' && tick > from && tick <= until).map(eventId)
    return {
      what: `the store has lost writes between ${isoText(from)} and ${isoText(until)}: after a failover or from a backup it was as at the first instant, as ${process} noticed`,
      fix: [
        'look for enqueues, puts and removals of that time in your logs, and repeat those that are gone',
        ...repeatedTicks(ticks),
        ...(now < until
          ? [`until ${isoText(until)} by the store's clock, new clients may get tokens lower than lost ones`]
          : []),
        'nothing has to be done about ids, versions and tokens (docs/guarantees.md)',
      ].join('; '),
    }
  })
  return { name: 'lost writes', about: `${reports.length} times in the last days`, findings }
}

/** Only the newest runs are read, so there may be more. */
function repeatedTicks(ticks: readonly string[]): string[] {
  if (ticks.length === 0) return []
  const named = ticks.slice(0, MAX_NAMED).join(', ')
  const more = ticks.length > MAX_NAMED ? ' …' : ''
  return [
    `ticks of that time that had run before ran again, under the same event id (${ticks.length} are there: ${named}${more})`,
  ]
}

/**
 * Several instances notice the same loss. What any of them still finds was kept, so the latest start counts; and the loss was over
 * when the first of them noticed it.
 */
function merged(reports: readonly LostWritesReport[]): LostWritesReport[] {
  const found: LostWritesReport[] = []
  for (const report of [...reports].sort((one, other) => one.from - other.from)) {
    const last = found.at(-1)
    if (last === undefined || report.from > last.until) found.push(report)
    else
      found[found.length - 1] = {
        ...last,
        from: Math.max(last.from, report.from),
        until: Math.min(last.until, report.until),
      }
  }
  return found
}
