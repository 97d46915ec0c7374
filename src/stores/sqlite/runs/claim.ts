/**
 * Starting runs: the highest priority first, then the oldest ready instant, then the oldest run.
 *
 * A large claim takes several transactions under one claim number. If its reply is lost, the instance does not know these
 * runs, and the next beat gives all of them back (`instances/beat.ts`). A repeated claim with the same number starts nothing
 * more, and returns the same runs.
 */
import { nextToken } from '../../../core/locks/token.js'
import type { SkipReason } from '../../../core/policies.js'
import type { Run } from '../../../core/runs/run.js'
import type { ClaimedRun, ClaimRequest, ClaimResult, SkippedRun } from '../../../core/store.js'
import type { SqliteFile } from '../connection/file.js'
import { jsonRows, row, rows } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { addHolder, isBusy, leastToken, makeRoom } from '../locks/acquire.js'
import { grantWaiters, oldestDue, oldestWaiting, readyWaitingRuns } from '../locks/pass-on.js'
import source from './claim.sql'
import { keyLimit, type RunRow, SHOWN_COLUMNS, type ShownRow, toRun, toSkipped } from './run-codec.js'
import { makeWait, runById, skipRun, startRuns } from './transitions.js'

export async function claimRuns(file: SqliteFile, request: ClaimRequest): Promise<ClaimResult> {
  const idle = await file.read((snapshot) => idleAnswer(snapshot, request))
  if (idle !== undefined) return idle
  const started: DueRun[] = []
  const skipped: SkippedRun[] = []
  for (;;) {
    const step = await file.write((tx) => claimStep(tx, request, started, file.share))
    started.push(...step.started)
    skipped.push(...step.skipped)
    if (!step.done) continue
    return file.read(({ db }) => {
      const runs = new Map(startedBy({ db }, request).map((run) => [run.id, run]))
      const inOrder = started.flatMap(({ id }) => runs.get(id) ?? [])
      return answer({ db, now: step.now }, request, inOrder, skipped)
    })
  }
}

type Claim = { instance: string; claim: number }
type Outlook = { is_due: number | null; next_at: number | null }
const claimStatus = row<Claim, { may_start: number; repeated: number }>(source, 'claimStatus')
const outlook = row<{ targets: string }, Outlook>(source, 'outlook')
const startedBy = jsonRows<Claim, ShownRow>(source, 'startedBy', SHOWN_COLUMNS)

/** The answer when there is nothing to start, as for most polls: it needs no transaction. */
function idleAnswer(snapshot: Snapshot, request: ClaimRequest): ClaimResult | undefined {
  const status = statusOf(snapshot, request)
  const { targets } = new Room(request)
  if (status === 'may start' && outlook(snapshot, { targets })?.is_due === 1) return undefined
  return answer(snapshot, request, status === 'repeated' ? startedBy(snapshot, request) : [])
}

function statusOf(snapshot: Snapshot, request: ClaimRequest) {
  const status = claimStatus(snapshot, request)
  if (status?.may_start !== 1) return 'may not start'
  return status.repeated === 1 ? 'repeated' : 'may start'
}

function answer(
  snapshot: Snapshot,
  request: ClaimRequest,
  runs: readonly ShownRow[],
  skipped: readonly SkippedRun[] = [],
): ClaimResult {
  const nextReadyAt = outlook(snapshot, { targets: new Room(request).targets })?.next_at ?? undefined
  const next = nextReadyAt === undefined ? {} : { nextReadyAt }
  return { now: snapshot.now, runs: runs.map(toRun).filter(isClaimed), skipped, ...next }
}

function isClaimed(run: Run): run is ClaimedRun {
  return run.token !== undefined && run.startedAt !== undefined
}

/** How many more runs a claim may start, of each target and of all. */
class Room {
  left: number
  readonly #byTarget: Map<string, number>

  constructor({ jobs, sinks, limit }: ClaimRequest) {
    this.left = limit
    this.#byTarget = new Map([
      ...jobs.map(({ name, limit }): [string, number] => [`job:${name}`, limit]),
      ...sinks.map(({ name, limit }): [string, number] => [`sink:${name}`, limit]),
    ])
  }

  /** The targets that have room, as a JSON list. */
  get targets(): string {
    return JSON.stringify(Array.from(this.#byTarget.keys()).filter((target) => this.isLeft({ target })))
  }

  isLeft({ target }: Pick<DueRun, 'target'>): boolean {
    return this.left > 0 && (this.#byTarget.get(target) ?? 0) > 0
  }

  take({ target }: DueRun): void {
    this.left -= 1
    this.#byTarget.set(target, (this.#byTarget.get(target) ?? 0) - 1)
  }
}

type DueRun = Pick<RunRow, 'id' | 'target' | 'start_by' | 'attempt' | 'key' | 'key_limit'>
const dueRuns = rows<{ targets: string; limit: number }, DueRun>(source, 'dueRuns')

/** One transaction of a claim, which has started `before` so far. It looks at `most` runs at most. */
function claimStep(tx: Tx, request: ClaimRequest, before: readonly DueRun[], most: number) {
  const { now } = tx
  const started: DueRun[] = []
  const skipped: SkippedRun[] = []
  const skip = (run: RunRow, reason: SkipReason) => {
    skipRun(tx, run, reason)
    skipped.push(toSkipped(run, reason))
  }
  if (before.length === 0 && statusOf(tx, request) !== 'may start') return { now, started, skipped, done: true }
  const room = new Room(request)
  for (const run of before) room.take(run)
  let looked = 0
  while (looked < most && room.left > 0) {
    const due = dueRuns(tx, { targets: room.targets, limit: Math.min(room.left, most - looked) })
    if (due.length === 0) return { now, started, skipped, done: true }
    const withoutKey: number[] = []
    const { readied } = tx
    for (const run of due) {
      if (!room.isLeft(run)) continue
      looked += 1
      if (isTooLate(tx, run)) skipLate(tx, run, skip)
      else if (run.key === null || startKeyed(tx, run, run.key, request, skip)) {
        if (run.key === null) withoutKey.push(run.id)
        room.take(run)
        started.push(run)
      }
      // What became ready on the way may come before the rest.
      if (tx.readied > readied) break
    }
    start(tx, withoutKey, request, nextToken(0, now, request.floor))
  }
  return { now, started, skipped, done: room.left <= 0 }
}

function start(tx: Tx, runs: readonly number[], { instance, claim }: ClaimRequest, leastToken: number): void {
  if (runs.length > 0) startRuns(tx, { runs: JSON.stringify(runs), leastToken, instance, claim })
}

function isTooLate({ now }: Tx, { attempt, start_by }: DueRun): boolean {
  return attempt === 0 && start_by !== null && now > start_by
}

type Skip = (run: RunRow, reason: SkipReason) => void

function skipLate(tx: Tx, due: DueRun, skip: Skip): void {
  const run = runById(tx, due)
  if (run !== undefined) skip(run, run.by_deadline === 1 ? 'deadline' : 'missed')
}

/** Starts a run with its key, or takes it out of the queue because it may not take the key now. */
function startKeyed(tx: Tx, due: DueRun, key: string, request: ClaimRequest, skip: Skip): boolean {
  if (!mayTakeKey(tx, due, key, skip)) return false
  start(tx, [due.id], request, leastToken(tx, key, request.floor))
  const { id, token } = runById(tx, due) ?? {}
  if (id === undefined || token == null) return false
  const { instance } = request
  addHolder(tx, { name: key, holder: `run:${id}:${token}`, token, run: id, instance, expiresAt: null })
  // With permits left, a younger run that waited only for this one to start is next.
  if (keyLimit(due) > 1) readyWaitingRuns(tx, key)
  return true
}

/** A run may take a key when a permit is free and no older run of the key is due or waits. */
function mayTakeKey(tx: Tx, due: DueRun, key: string, skip: Skip): boolean {
  const limit = keyLimit(due)
  grantWaiters(tx, key)
  const isFree = !isBusy(tx, key, limit)
  if (isFree) {
    makeRoom(tx, key, limit)
    if (Math.min(oldestDue(tx, key), oldestWaiting(tx, { name: key })?.id ?? due.id) >= due.id) return true
  }
  const run = runById(tx, due)
  if (run === undefined) return false
  if (!isFree && run.attempt === 0 && run.key_when_busy === 'skip') skip(run, 'busy')
  else makeWait(tx, run, 'key')
  return false
}
