/**
 * Claimed runs as lines of text: how the server writes them, and how they are read. Thirty columns of a run would cost both
 * sides as much as starting it does, so a run is one text of what every run has; what most do not have comes at its end,
 * for those that have it. Nothing in it has a line break of its own: payloads are JSON, and names have no control characters.
 */
import type { ErrorRecord } from '../../core/errors.js'
import type { Mutable } from '../../core/mutable.js'
import type { SkipReason } from '../../core/policies.js'
import type { ClaimedRun } from '../../core/store.js'
import { fromText, targetOf } from '../../core/stored-text.js'
import { KEEPS, ORIGINS } from './run-row.js'

/** What every run has, in the order in which it is read. */
const COMMON = [
  ...[
    'u.id',
    'u.target',
    'u.origin',
    "coalesce(u.schedule, '')",
    "coalesce(u.tick::text, '')",
    'u.payload',
    'u.priority',
  ],
  ...['u.keep', 'u.created_at', 'u.ready_at', 'u.attempt', 'u.token', 'u.started_at'],
]
const RARE = ['options', 'backfill', 'key', 'dedupe', 'reason', 'start_by', 'error']
const HAS_RARE = [...RARE.map((column) => `u.${column} is not null`), 'u.failures > 0', 'u.takeovers > 0', 'u.cancel']
const REST = ['options', 'backfill', 'key', 'key_limit', 'key_waits', 'dedupe', 'reason', 'start_by', 'error']
const ALL_REST = [...REST, 'failures', 'takeovers', 'cancel'].map((column) => `u.${column}`)

/** A run under the alias `u`, after its place among those that were claimed with it. */
export function claimedLine(place: string): string {
  const rest = `case when ${HAS_RARE.join(' or ')} then json_build_array(${ALL_REST.join(', ')})::text else '' end`
  return `concat_ws(E'\\n', ${[place, ...COMMON, rest].join(', ')})`
}

type Rest = readonly [
  ...[options: string | null, backfill: string | null, key: string | null, limit: number, waits: boolean],
  ...[dedupe: string | null, reason: SkipReason | null, startBy: number | null, error: string | null],
  ...[failures: number, takeovers: number, cancel: boolean],
]

export function claimedRun(line: string, instance: string): ClaimedRun {
  const values = line.split('\n')
  const number = (at: number) => Number(values[at])
  const [, id = '', target = '', , schedule, tick, payload = 'null'] = values
  const rest = values[14] ? (JSON.parse(values[14]) as Rest) : undefined
  const run: Mutable<ClaimedRun> = {
    id,
    target: targetOf(target, rest?.[0] ?? null),
    origin: ORIGINS[number(3)] ?? 'enqueue',
    payload: fromText(payload),
    priority: number(7),
    keep: KEEPS[number(8)] ?? 'all',
    state: 'running',
    createdAt: number(9),
    readyAt: number(10),
    attempt: number(11),
    failures: rest?.[9] ?? 0,
    takeovers: rest?.[10] ?? 0,
    token: number(12),
    startedAt: number(13),
    instance,
  }
  if (schedule) run.schedule = schedule
  if (tick) run.tick = Number(tick)
  if (rest !== undefined) addRest(run, rest)
  return run
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
