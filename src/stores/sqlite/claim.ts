/**
 * Starting runs, the highest priority first, then the oldest ready instant, then the oldest run.
 *
 * A large claim takes several transactions under the one claim number: what the first ones started is started, and if
 * the answer never arrives, the beat gives all of it back.
 */
import type { Run } from '../../core/run.js'
import type { ClaimedRun, ClaimRequest, ClaimResult } from '../../core/store.js'
import type { Connection } from './connection.js'
import type { SqliteFile } from './file.js'
import { runningOf } from './instances.js'
import { handOn } from './names.js'
import { type DueRun, dueRuns, type Group, nextReadyAt, readyGroups } from './ready-runs.js'
import { skipRun } from './run-endings.js'
import type { RunRecord } from './run-row.js'
import { toRun } from './run-view.js'
import { loadRun } from './run-write.js'
import { isTooLate, startKeyed, startPlain } from './start-run.js'
import type { Tx } from './tx.js'

export async function claimRuns(file: SqliteFile, request: ClaimRequest): Promise<ClaimResult> {
  const targets = JSON.stringify([...capacities(request).keys()])
  const seen = await file.read((db, now) => lookAround(db, now, request, targets))
  if (seen !== undefined) return seen
  const runs: RunRecord[] = []
  for (let first = true; ; first = false) {
    const step = await file.write((tx) => claimStep(tx, request, targets, { before: runs, looks: file.share, first }))
    runs.push(...step.started)
    if (step.done) return answer(step.now, runs, step.next)
  }
}

const STATUS = `select expires_at, dead, claims_settled,
  exists (select 1 from belfry_claims c where c.instance = i.id and c.claim = ?1),
  exists (select 1 from belfry_settings where name = 'frozen')
  from belfry_instances i where id = ?2`

type Status = 'may start' | 'may not start' | 'repeated'

/** A claim that was answered before, as far as the store knows, starts nothing more. */
function statusOf(db: Connection, now: number, { instance, claim }: ClaimRequest): Status {
  const row = db.get<[number, number, number, number, number]>(STATUS, claim, instance)
  if (row === undefined) return 'may not start'
  const [expiresAt, dead, claimsSettled, known, frozen] = row
  if (frozen === 1 || dead === 1 || expiresAt <= now) return 'may not start'
  return known === 1 || claim <= claimsSettled ? 'repeated' : 'may start'
}

/** Answers without a transaction when there is nothing to start, which is what polls find. */
function lookAround(db: Connection, now: number, request: ClaimRequest, targets: string): ClaimResult | undefined {
  const groups = readyGroups(db, targets)
  const status = statusOf(db, now, request)
  if (status === 'may start' && groups.some(({ firstAt }) => firstAt <= now)) return undefined
  return answer(now, status === 'repeated' ? repeated(db, request) : [], nextReadyAt(db, now, groups))
}

function repeated(db: Connection, { instance, claim }: ClaimRequest): RunRecord[] {
  return runningOf({ db }, instance).filter((run) => run.claim === claim)
}

interface Step {
  readonly now: number
  readonly started: readonly RunRecord[]
  readonly done: boolean
  readonly next: number | undefined
}

const NOTE_CLAIM = 'insert or ignore into belfry_claims (instance, claim) values (?, ?)'

/** What was started before, and how many runs this transaction may look at. */
interface Progress {
  readonly before: readonly RunRecord[]
  readonly looks: number
  readonly first: boolean
}

function claimStep(tx: Tx, request: ClaimRequest, targets: string, progress: Progress): Step {
  const { db, now } = tx
  const status = progress.first ? statusOf(db, now, request) : 'may start'
  const round = new Round(tx, request, progress)
  if (status === 'may start') {
    db.run(NOTE_CLAIM, request.instance, request.claim)
    while (!round.over) round.start(readyGroups(db, targets))
    handOn(tx)
  }
  const done = status !== 'may start' || round.exhausted
  const started = status === 'repeated' ? repeated(db, request) : round.started
  return { now, started, done, next: done ? nextReadyAt(db, now, readyGroups(db, targets)) : undefined }
}

/** One transaction's part of a claim. */
class Round {
  readonly started: RunRecord[] = []
  /** Nothing is left to start, or no room to start it. */
  exhausted = false
  readonly #tx: Tx
  readonly #request: ClaimRequest
  readonly #left: Map<string, number>
  #room: number
  #looks: number

  constructor(tx: Tx, request: ClaimRequest, { before, looks }: Progress) {
    this.#tx = tx
    this.#looks = looks
    this.#request = request
    this.#left = capacities(request)
    this.#room = request.limit - before.length
    for (const run of before) this.#take(run.target)
  }

  get over(): boolean {
    if (this.#room <= 0) this.exhausted = true
    return this.exhausted || this.#looks <= 0
  }

  /** Starts due runs of the highest priority, until they end or what was read of them is no longer true. */
  start(groups: readonly Group[]): void {
    const open = groups.filter(({ target, firstAt }) => firstAt <= this.#tx.now && this.#has(target))
    if (open.length === 0) {
      this.exhausted = true
      return
    }
    const highest = Math.max(...open.map(({ priority }) => priority))
    const { batch, upTo } = this.#read(open.filter(({ priority }) => priority === highest))
    const plain: RunRecord[] = []
    const { readied } = this.#tx
    for (const due of batch) {
      if (this.#room <= 0 || !this.#has(due.run.target)) continue
      this.#looks -= 1
      if (due.key === null && !isTooLate(due.run, this.#tx.now)) {
        plain.push(due.run)
        this.#note(due.run)
      } else this.#startOther(due)
      if (due === upTo || this.#tx.readied > readied) break
    }
    startPlain(this.#tx, plain, this.#request)
  }

  /** One that has a key, or is too late. */
  #startOther({ run: { id }, key }: DueRun): void {
    const run = loadRun(this.#tx, id)
    if (run === undefined) return
    if (isTooLate(run, this.#tx.now)) skipRun(this.#tx, run, 'deadline')
    else if (key !== null && startKeyed(this.#tx, run, key, this.#request)) this.#note(run)
  }

  /** The runs of some groups in the order of claiming; beyond `upTo` one of the groups may have more than was read. */
  #read(groups: readonly Group[]): { batch: readonly DueRun[]; upTo: DueRun | undefined } {
    const { db, now } = this.#tx
    const ends: DueRun[] = []
    const batch = groups.flatMap((group) => {
      const limit = Math.min(this.#room, this.#looks, this.#left.get(group.target) ?? 0)
      const runs = dueRuns(db, now, group, limit)
      const last = runs.at(-1)
      if (last !== undefined && runs.length === limit) ends.push(last)
      return runs
    })
    if (groups.length > 1) batch.sort(byOrder)
    return { batch, upTo: ends.sort(byOrder)[0] }
  }

  #note(run: RunRecord): void {
    this.#take(run.target)
    this.#room -= 1
    this.started.push(run)
  }

  #take(target: string): void {
    this.#left.set(target, (this.#left.get(target) ?? 0) - 1)
  }

  #has(target: string): boolean {
    return (this.#left.get(target) ?? 0) > 0
  }
}

function byOrder({ run: one }: DueRun, { run: other }: DueRun): number {
  return one.readyAt === other.readyAt ? one.id - other.id : one.readyAt - other.readyAt
}

function capacities({ jobs, sinks }: ClaimRequest): Map<string, number> {
  return new Map([
    ...jobs.map(({ name, limit }): [string, number] => [`job:${name}`, limit]),
    ...sinks.map(({ name, limit }): [string, number] => [`sink:${name}`, limit]),
  ])
}

function answer(now: number, runs: readonly RunRecord[], next: number | undefined): ClaimResult {
  return { now, runs: runs.map(toRun).filter(isClaimed), ...(next === undefined ? {} : { nextReadyAt: next }) }
}

function isClaimed(run: Run): run is ClaimedRun {
  return run.token !== undefined && run.startedAt !== undefined
}
