/**
 * Starting runs: the highest priority first, then the oldest ready instant, then the oldest run.
 *
 * A large claim takes several transactions under one claim number. If its reply is lost, the instance does not know these
 * runs, and the next beat gives all of them back (`instances/beat.ts`). A repeated claim with the same number starts nothing
 * more, and returns the same runs.
 */

import { nextToken } from '../../../core/locks/token.js'
import type { Run } from '../../../core/runs/run.js'
import type { ClaimedRun, ClaimRequest, ClaimResult } from '../../../core/store.js'
import type { Connection } from '../connection/connection.js'
import type { SqliteFile } from '../connection/file.js'
import { statement } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { addHolder, isBusy, leastToken, makeRoom } from '../locks/acquire.js'
import { grantWaiters, oldestDue, oldestWaiting, readyWaitingRuns } from '../locks/pass-on.js'
import source from './claim.sql'
import { keyLimit, type RunRow, toRun } from './run-codec.js'
import { loadRun, makeWait, skipRun, startRuns } from './transitions.js'

export async function claimRuns(file: SqliteFile, request: ClaimRequest): Promise<ClaimResult> {
  const idle = await file.read((snapshot) => idleAnswer(snapshot, request))
  if (idle !== undefined) return idle
  const started: DueRun[] = []
  for (;;) {
    const step = await file.write((tx) => claimStep(tx, request, started, file.share))
    started.push(...step.started)
    if (!step.done) continue
    return file.read(({ db }) => {
      const runs = new Map(startedRuns(db, request).map((run) => [run.id, run]))
      const inOrder = started.flatMap(({ id }) => runs.get(id) ?? [])
      return answer({ db, now: step.now }, request, inOrder)
    })
  }
}

/** The answer when there is nothing to start, as for most polls: it needs no transaction. */
function idleAnswer(snapshot: Snapshot, request: ClaimRequest): ClaimResult | undefined {
  const status = statusOf(snapshot, request)
  const isDue = ({ first_at }: Group) => first_at <= snapshot.now
  if (status === 'may start' && readyGroups(snapshot, targetsOf(request)).some(isDue)) return undefined
  return answer(snapshot, request, status === 'repeated' ? startedRuns(snapshot.db, request) : [])
}

type StatusRow = { expires_at: number; dead: number; frozen: number; repeated: number }
const claimStatus = statement<{ instance: string; claim: number }, StatusRow>(source, 'claimStatus')

function statusOf({ db, now }: Snapshot, { instance, claim }: ClaimRequest) {
  const row = db.get(claimStatus, { instance, claim })
  if (row === undefined || row.frozen === 1 || row.dead === 1 || row.expires_at <= now) return 'may not start'
  return row.repeated === 1 ? 'repeated' : 'may start'
}

/** One transaction of a claim, which has started `before` so far. */
function claimStep(tx: Tx, request: ClaimRequest, before: readonly DueRun[], looks: number) {
  const claim = new Claim(tx, request, before, looks)
  if (before.length === 0 && statusOf(tx, request) !== 'may start') claim.done = true
  else claim.start()
  return { now: tx.now, started: claim.started, done: claim.done }
}

/** The part of a claim that one transaction does. */
class Claim {
  /** What this transaction has started. */
  readonly started: DueRun[] = []
  /** Nothing is left to start, or no room to start it. */
  done = false
  readonly #tx: Tx
  readonly #request: ClaimRequest
  /** How many more runs of each target may start, and of all targets. */
  readonly #capacities: Map<string, number>
  #room: number
  /** How many more runs this transaction may look at. */
  #looks: number

  constructor(tx: Tx, request: ClaimRequest, before: readonly DueRun[], looks: number) {
    this.#looks = looks
    this.#tx = tx
    this.#request = request
    this.#capacities = capacities(request)
    this.#room = request.limit
    for (const run of before) this.#count(run)
  }

  start(): void {
    const { now } = this.#tx
    const targets = targetsOf(this.#request)
    while (!this.done && this.#looks > 0) {
      const groups = readyGroups(this.#tx, targets).filter(
        (group) => group.first_at <= now && this.#capacity(group) > 0,
      )
      if (this.#room <= 0 || groups.length === 0) this.done = true
      else this.#startSome(groups)
    }
  }

  /** Starts due runs of the highest priority, as far as their order is known. */
  #startSome(groups: readonly Group[]): void {
    const highest = Math.max(...groups.map(({ priority }) => priority))
    const { runs, completeUpTo } = this.#read(groups.filter(({ priority }) => priority === highest))
    const withoutKey: number[] = []
    const { now, readied } = this.#tx
    for (const run of runs) {
      if (this.#room <= 0 || this.#capacity(run) <= 0) continue
      this.#looks -= 1
      if (isTooLate(run, now)) this.#skip(run)
      else if (run.key !== null) this.#startKeyed(run, run.key)
      else {
        withoutKey.push(run.id)
        this.#take(run)
      }
      if (run === completeUpTo || this.#tx.readied > readied) break
    }
    startRuns(this.#tx, withoutKey, this.#request, nextToken(0, now, this.#request.floor))
  }

  /** The first due runs of some groups. After `completeUpTo`, runs of a group that were not read may come first. */
  #read(groups: readonly Group[]): { runs: readonly DueRun[]; completeUpTo: DueRun | undefined } {
    const { db, now } = this.#tx
    const ends: DueRun[] = []
    const runs = groups.flatMap((group) => {
      const limit = Math.min(this.#room, this.#looks, this.#capacity(group))
      const found = db.all(dueRuns, { target: group.target, priority: group.priority, now, limit })
      const last = found.at(-1)
      if (last !== undefined && found.length === limit) ends.push(last)
      return found
    })
    return { runs: runs.sort(byOrder), completeUpTo: ends.sort(byOrder)[0] }
  }

  #skip({ id }: DueRun): void {
    const run = loadRun(this.#tx.db, id)
    if (run !== undefined) skipRun(this.#tx, run, 'deadline')
  }

  /** Starts a run with its key, or takes it out of the queue because it may not take the key now. */
  #startKeyed(due: DueRun, key: string): void {
    const tx = this.#tx
    if (!mayTakeKey(tx, due, key)) return
    startRuns(tx, [due.id], this.#request, leastToken(tx, key, this.#request.floor))
    const run = loadRun(tx.db, due.id)
    if (run?.token == null) return
    const { instance } = this.#request
    const holder = `run:${run.id}:${run.token}`
    addHolder(tx, { name: key, holder, token: run.token, run: run.id, instance, expiresAt: null })
    // With permits left, a younger run that waited only for this one to start is next.
    if (keyLimit(run) > 1) readyWaitingRuns(tx, key)
    this.#take(due)
  }

  #capacity({ target }: { readonly target: string }): number {
    return this.#capacities.get(target) ?? 0
  }

  #take(run: DueRun): void {
    this.started.push(run)
    this.#count(run)
  }

  #count(run: DueRun): void {
    this.#capacities.set(run.target, this.#capacity(run) - 1)
    this.#room -= 1
  }
}

function isTooLate({ attempt, start_by }: DueRun, now: number): boolean {
  return attempt === 0 && start_by !== null && now > start_by
}

/** A run may take a key when a permit is free and no older run of the key is due or waits. */
function mayTakeKey(tx: Tx, due: DueRun, key: string): boolean {
  const limit = keyLimit(due)
  grantWaiters(tx, key)
  const isFree = !isBusy(tx, key, limit)
  if (isFree) {
    makeRoom(tx, key, limit)
    if (oldestDue(tx, key) >= due.id && (oldestWaiting(tx, key)?.id ?? due.id) >= due.id) return true
  }
  const run = loadRun(tx.db, due.id)
  if (run === undefined) return false
  if (!isFree && run.attempt === 0 && run.key_when_busy === 'skip') skipRun(tx, run, 'busy')
  else makeWait(tx, run, 'key')
  return false
}

/** Ready runs of one target and priority. */
export interface Group {
  readonly target: string
  readonly priority: number
  readonly first_at: number
}

const selectGroups = statement<{ targets: string }, Group>(source, 'readyGroups')

/** `targets` is a JSON list. */
export function readyGroups({ db }: Snapshot, targets: string): readonly Group[] {
  return db.all(selectGroups, { targets })
}

type After = { target: string; priority: number; now: number }
const nextAfter = statement<After, { at: number | null }>(source, 'nextAfter')

/** The next instant at which a run of the groups becomes ready; infinite when there is none. */
function nextReadyAt({ db, now }: Snapshot, groups: readonly Group[]): number {
  const instants = groups.map(({ target, priority, first_at }) => {
    if (first_at > now) return first_at
    return db.get(nextAfter, { target, priority, now })?.at ?? Number.POSITIVE_INFINITY
  })
  return Math.min(...instants)
}

type DueRun = Pick<RunRow, 'id' | 'target' | 'ready_at' | 'start_by' | 'attempt' | 'key' | 'key_limit'>
const dueRuns = statement<After & { limit: number }, DueRun>(source, 'dueRuns')

function byOrder(one: DueRun, other: DueRun): number {
  return one.ready_at === other.ready_at ? one.id - other.id : one.ready_at - other.ready_at
}

function capacities({ jobs, sinks }: ClaimRequest): Map<string, number> {
  return new Map([
    ...jobs.map(({ name, limit }): [string, number] => [`job:${name}`, limit]),
    ...sinks.map(({ name, limit }): [string, number] => [`sink:${name}`, limit]),
  ])
}

function targetsOf(request: ClaimRequest): string {
  return JSON.stringify([...capacities(request).keys()])
}

const startedBy = statement<{ instance: string; claim: number }, { runs: string }>(source, 'startedBy')

/** What a claim has started and still runs. */
function startedRuns(db: Connection, { instance, claim }: ClaimRequest): readonly RunRow[] {
  return JSON.parse(db.get(startedBy, { instance, claim })?.runs ?? '[]') as RunRow[]
}

function answer(snapshot: Snapshot, request: ClaimRequest, runs: readonly RunRow[]): ClaimResult {
  const nextAt = nextReadyAt(snapshot, readyGroups(snapshot, targetsOf(request)))
  const next = Number.isFinite(nextAt) ? { nextReadyAt: nextAt } : {}
  return { now: snapshot.now, runs: runs.map(toRun).filter(isClaimed), ...next }
}

function isClaimed(run: Run): run is ClaimedRun {
  return run.token !== undefined && run.startedAt !== undefined
}
