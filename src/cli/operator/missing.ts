/** The error for an unknown name, with a suggestion if a similar one exists. */
import type { BelfryClient } from '../../client/index.js'
import { type BelfryError, failure, quote } from '../../core/errors.js'
import { nearest } from '../../core/names/nearest.js'

/** A suggestion comes from this many schedules, the first by id. */
const COMPARED = 1_000

export async function missingSchedule(client: BelfryClient, id: string): Promise<BelfryError> {
  const { data } = await client.schedules.list({ limit: COMPARED }).catch(() => ({ data: [] }))
  const meant = nearest(
    id,
    data.map((schedule) => schedule.id),
  )
  const hint = meant === undefined ? 'belfry ls lists all' : `did you mean ${quote(meant)}?`
  return failure('SCHEDULE_NOT_FOUND', `there is no schedule ${quote(id)}: ${hint}`)
}
