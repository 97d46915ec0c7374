/**
 * Claimed runs as rows: how the server writes them, and how they are read. Thirty columns of a run cost both sides as much
 * as starting it does, so there are only those that every run has; what most do not have comes as one text, for those
 * that have it.
 */
import type { ErrorRecord } from '../../core/errors.js'
import type { Mutable } from '../../core/mutable.js'
import type { SkipReason } from '../../core/policies.js'
import type { ClaimedRun } from '../../core/store.js'
import { fromText, targetOf } from '../../core/stored-text.js'
import type { Row } from './connection.js'
import { KEEPS, ORIGINS } from './run-row.js'

/** Columns that every run has, in the order in which they are read. */
const COMMON = {
  ...{ id: 'bigint', target: 'text', origin: 'smallint', schedule: 'text', tick: 'bigint', payload: 'text' },
  ...{ priority: 'integer', keep: 'smallint', created_at: 'bigint', ready_at: 'bigint', attempt: 'integer' },
  ...{ token: 'bigint', started_at: 'bigint' },
}
const RARE = ['options', 'backfill', 'key', 'dedupe', 'reason', 'start_by', 'error']
const HAS_RARE = [...RARE.map((column) => `u.${column} is not null`), 'u.failures > 0', 'u.takeovers > 0', 'u.cancel']
const REST = ['options', 'backfill', 'key', 'key_limit', 'key_waits', 'dedupe', 'reason', 'start_by', 'error']
const ALL_REST = [...REST, 'failures', 'takeovers', 'cancel'].map((column) => `u.${column}`)

/** As what a function returns. The names keep out of the way of the tables'. */
export const CLAIMED_ROW = [
  'r_place bigint',
  ...Object.entries(COMMON).map(([column, type]) => `r_${column} ${type}`),
  'r_rest text',
].join(', ')
export const CLAIMED_COLUMNS = ['r_place', ...Object.keys(COMMON).map((column) => `r_${column}`), 'r_rest'].join(', ')

/** A run under the alias `u`, and its place among those that were claimed with it. */
export function claimedRow(place: string): string {
  const common = Object.keys(COMMON).map((column) => `u.${column}`)
  const rest = `case when ${HAS_RARE.join(' or ')} then json_build_array(${ALL_REST.join(', ')})::text end`
  return [place, ...common, rest].join(', ')
}

/** The row after the runs: something about all of them. */
export function lastRow(rest: string): string {
  return ['null::bigint', ...Object.values(COMMON).map((type) => `null::${type}`), `(${rest})::text`].join(', ')
}

type Rest = readonly [
  ...[options: string | null, backfill: string | null, key: string | null, limit: number, waits: boolean],
  ...[dedupe: string | null, reason: SkipReason | null, startBy: number | null, error: string | null],
  ...[failures: number, takeovers: number, cancel: boolean],
]

export function claimedRun(row: Row, instance: string): ClaimedRun {
  const rest = restOf(row) as Rest | undefined
  const run: Mutable<ClaimedRun> = {
    id: row[1] ?? '',
    target: targetOf(row[2] ?? '', rest?.[0] ?? null),
    origin: ORIGINS[Number(row[3])] ?? 'enqueue',
    payload: fromText(row[6] ?? 'null'),
    priority: Number(row[7]),
    keep: KEEPS[Number(row[8])] ?? 'all',
    state: 'running',
    createdAt: Number(row[9]),
    readyAt: Number(row[10]),
    attempt: Number(row[11]),
    failures: rest?.[9] ?? 0,
    takeovers: rest?.[10] ?? 0,
    token: Number(row[12]),
    startedAt: Number(row[13]),
    instance,
  }
  if (typeof row[4] === 'string') run.schedule = row[4]
  if (typeof row[5] === 'string') run.tick = Number(row[5])
  if (rest !== undefined) addRest(run, rest)
  return run
}

/** What a row says besides its columns. */
export function restOf(row: Row): unknown {
  const text = row[14]
  return typeof text === 'string' ? JSON.parse(text) : undefined
}

function addRest(run: Mutable<ClaimedRun>, rest: Rest): void {
  const [, backfill, key, limit, waits, dedupe, reason, startBy, error, , , cancel] = rest
  if (backfill !== null) run.backfill = backfill
  if (key !== null) run.key = { name: key, limit, whenBusy: waits ? 'wait' : 'skip' }
  if (dedupe !== null) run.dedupe = dedupe
  if (reason !== null) run.reason = reason
  if (startBy !== null) run.startBy = startBy
  if (error !== null) run.error = JSON.parse(error) as ErrorRecord
  if (cancel) run.cancelRequested = true
}
