/** Runs as rows: their columns, and how a row is read. */
import type { ErrorRecord } from '../../core/errors.js'
import type { RunKey } from '../../core/key.js'
import type { Mutable } from '../../core/mutable.js'
import type { SkipReason } from '../../core/policies.js'
import type { Keep, Origin, Run, RunState, WaitsFor } from '../../core/run.js'
import { fromText, targetOf } from '../../core/stored-text.js'
import type { Row } from './connection/database.js'

const STATES: readonly RunState[] = ['waiting', 'ready', 'running', 'succeeded', 'failed', 'cancelled', 'skipped']
export const ORIGINS: readonly Origin[] = ['tick', 'trigger', 'backfill', 'enqueue']
export const KEEPS: readonly Keep[] = ['all', 'failures', 'none']
const WAITS: readonly (WaitsFor | undefined)[] = [undefined, 'stamp', 'overlap', 'key']

const READY = STATES.indexOf('ready')
const RUNNING = STATES.indexOf('running')

export const waitNumber = (waitsFor: WaitsFor): number => WAITS.indexOf(waitsFor)
/**
 * The run of a tick. Not `origin = 0`: that would let the server find a schedule's runs by the index of ticks, which goes by
 * instant, and so through all ticks that there are.
 */
export const IS_TICK = 'origin < 1'

export const originNumber = (origin: Origin): number => ORIGINS.indexOf(origin)
export const keepNumber = (keep: Keep): number => KEEPS.indexOf(keep)

/** What others see of a run, in the order in which `toRun` reads it. */
const COLUMNS = [
  ...['id', 'target', 'options', 'origin', 'schedule', 'tick', 'backfill', 'payload', 'priority', 'keep', 'key'],
  ...['key_limit', 'key_waits', 'dedupe', 'state', 'waits_for', 'reason', 'created_at', 'ready_at', 'start_by'],
  ...[
    'attempt',
    'failures',
    'takeovers',
    'token',
    'instance',
    'started_at',
    'finished_at',
    'cancel',
    'result',
    'error',
  ],
]

/** A run that runs is among those that are ready at first, as far as indexes know. */
export function stateOf(run: string): string {
  return `case when ${run}.running then ${RUNNING} else ${run}.state end`
}

/** Whether a run is in one of these states, said in a way that indexes by state can be used for. */
export function inStates(run: string, states: readonly RunState[]): string {
  const conditions = states.map((state) => {
    if (state === 'ready') return `${run}.state = ${READY} and not ${run}.running`
    if (state === 'running') return `${run}.state = ${READY} and ${run}.running or ${run}.state = ${RUNNING}`
    return `${run}.state = ${STATES.indexOf(state)}`
  })
  return `(${conditions.join(' or ') || 'false'})`
}

/** Those columns of a table's alias. */
export function runColumns(of: string): string {
  return COLUMNS.map((column) => (column === 'state' ? stateOf(of) : `${of}.${column}`)).join(', ')
}

/** Reads the columns of `runColumns`, from a place in the row on. */
export function toRun(row: Row, at = 0): Mutable<Run> {
  const text = (column: number) => row[at + column] ?? ''
  const number = (column: number) => Number(text(column))
  const has = (column: number) => row[at + column] !== null
  const run: Mutable<Run> = {
    id: text(0),
    target: targetOf(text(1), row[at + 2] ?? null),
    origin: ORIGINS[number(3)] ?? 'enqueue',
    payload: fromText(text(7)),
    priority: number(8),
    keep: KEEPS[number(9)] ?? 'all',
    state: STATES[number(14)] ?? 'failed',
    createdAt: number(17),
    readyAt: number(18),
    attempt: number(20),
    failures: number(21),
    takeovers: number(22),
  }
  const waitsFor = WAITS[number(15)]
  if (has(4)) run.schedule = text(4)
  if (has(5)) run.tick = number(5)
  if (has(6)) run.backfill = text(6)
  if (has(10)) run.key = { name: text(10), limit: number(11), whenBusy: text(12) === 't' ? 'wait' : 'skip' }
  if (has(13)) run.dedupe = text(13)
  if (waitsFor !== undefined) run.waitsFor = waitsFor
  if (has(16)) run.reason = text(16) as SkipReason
  if (has(19)) run.startBy = number(19)
  if (has(23)) run.token = number(23)
  if (has(24)) run.instance = text(24)
  if (has(25)) run.startedAt = number(25)
  if (has(26)) run.finishedAt = number(26)
  if (text(27) === 't') run.cancelRequested = true
  // What a transaction committed shows when the run has ended.
  if (has(28) && run.state === 'succeeded') run.result = fromText(text(28))
  if (has(29)) run.error = JSON.parse(text(29)) as ErrorRecord
  return run
}

/** The number behind a run's id; undefined for a text that is none of ours. */
export function runNumber(id: string): string | undefined {
  return /^[1-9]\d{0,15}$/.test(id) ? id : undefined
}

/** The key as its three columns. */
export function keyValues(key: RunKey | 'unstamped' | undefined): [string | null, number | null, boolean | null] {
  if (key === undefined || key === 'unstamped') return [null, null, null]
  return [key.name, key.limit, key.whenBusy === 'wait']
}
