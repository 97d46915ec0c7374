/** The error for an unknown name, with a suggestion if a similar one exists. */
import type { BelfryClient } from '../../client/index.js'
import { type BelfryError, failure, quote } from '../../core/errors.js'

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

/** The name with the smallest edit distance, if it is small. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  let best: string | undefined
  let fewest = Math.max(1, Math.floor(given.length / 3)) + 1
  for (const name of names) {
    if (Math.abs(name.length - given.length) >= fewest) continue
    const changes = editDistance(given.toLowerCase(), name.toLowerCase())
    if (changes < fewest) [best, fewest] = [name, changes]
  }
  return best
}

function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
