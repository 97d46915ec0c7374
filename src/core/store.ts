/**
 * The store contract: all state that instances share, as atomic operations.
 *
 * Rules for all operations:
 * - Each operation is atomic and short. It happened or it did not, and it holds no lock afterwards.
 * - Time is the store's own. Operations that depend on it return the `now` that they used.
 * - Losing is a value, failing throws. An operation that threw may still have been applied, because its reply may have been
 *   lost. So each is safe to repeat: repeating an applied operation changes nothing more. The exception is an `enqueue`
 *   without a dedupe key, which makes another run.
 * - Every write by an attempt carries its token, and is refused as stale when the token is not the newest.
 * - Hints may be lost. Polling alone finds all changes.
 *
 * `testing/store-contract.ts` has this contract as tests. A store is complete when they pass.
 */

import type { Json } from './checks/json.js'
import type { Check } from './diagnosis.js'
import type { NoSource, StoreSource } from './instances/beat-store.js'
import type { AttemptRef, BeatRequest, BeatResult, Instance, InstanceInfo, JobInfo } from './instances/instance.js'
import type { AcquireRequest, AcquireResult, Lease, ReleaseRequest, RenewRequest } from './locks/lease.js'
import type { SkipReason } from './policies.js'
import type { RecordQuery, RecordWrite, StoredRecord } from './records/record.js'
import type { NewRun, Outcome, Run, RunState, Target } from './runs/run.js'
import type { Plan, Plannable, SkipRange, Unfinished } from './schedules/plan.js'
import type { Schedule, ScheduleDefinition, ScheduleState } from './schedules/schedule.js'

/** `Tx` is what the callback of `transaction()` gets. */
export interface Store<Tx = unknown> {
  /** A type without a value. It carries `Tx` to the handlers. */
  readonly '~tx'?: Tx
  readonly supports: StoreSupports
  readonly schedules: ScheduleStore
  readonly runs: RunStore
  readonly leases: LeaseStore
  readonly instances: InstanceStore
  readonly records: RecordStore
  /**
   * The prefix of all keys of the store, for a store on a server that sinks can write to. Sinks refuse to write to keys
   * with this prefix.
   */
  readonly keyPrefix?: string

  open(): Promise<void>
  close(): Promise<void>
  now(): Promise<number>
  /**
   * Hints that something changed. The returned function unsubscribes. A store without wake-ups sends at most hints of changes
   * through this handle. A put schedule causes a hint only if it is due soon (`isSoon`). A hint of a lease may name the
   * holder that the lease was handed to; other waiters then ignore it.
   */
  subscribe(listener: WakeListener): () => void
  /**
   * Present when the store has a proof of life beside the beat, so that dead instances are detected at once. Calls back
   * when this process has lost its proof: other instances may have taken its runs and locks over. The engine then gives
   * them all up and joins again. The returned function unsubscribes.
   */
  onLost?(listener: (why: string) => void): () => void
  /** Calls back with a warning for the log. The returned function unsubscribes. */
  onWarning?(listener: (message: string) => void): () => void
  /** How the beat thread opens the same store, or why it cannot. Absent for a store that exists only in this thread. */
  reopen?(): StoreSource | NoSource
  /** Keeps all instances from starting runs until `thaw`. Ticks are still recorded. */
  freeze(note: string | undefined): Promise<void>
  thaw(): Promise<void>
  frozen(): Promise<Frozen | undefined>
  /**
   * Checks for `belfry doctor` that only this kind of store can make: version, indexes, settings, clocks. They read a bounded
   * amount and change nothing. Optional.
   */
  diagnose?(): Promise<readonly Check[]>
}

export interface StoreSupports {
  /** `transaction()` in handlers. */
  readonly transactions: boolean
  /** Hints reach other processes. */
  readonly wakeups: boolean
  /** Acknowledged writes survive a crash of the store. */
  readonly durable: boolean
  /** Several processes can use it at once. */
  readonly shared: boolean
}

/** What a hint is about: due schedules, ready runs, freed locks, attempts to cancel, finished runs. */
export const WAKES = ['schedules', 'runs', 'leases', 'attempts', 'settled'] as const
export type Wake = (typeof WAKES)[number]

export type WakeListener = (wake: Wake, holder?: string) => void

export interface Frozen {
  readonly at: number
  readonly note?: string
}

/** What a migration did, or would do. Versions are whole numbers; 0 means that there are no tables of Belfry. */
export interface MigrationReport {
  readonly from: number
  readonly to: number
  /** Empty when the schema is up to date. */
  readonly sql: string
}

/**
 * A page of a list by keyset: pass `next` as `after` for the next page. `checkPageLimit` refuses limits below 1.
 *
 * A query with `look` reads only about that many items. Its page may then be short or empty and still have a `next`. Without
 * `look` only the last page is short, however many items the filter leaves out.
 */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next?: string
}

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ScheduleStore {
  /**
   * Creates or replaces schedules, by `decidePut`. Unclaimed ticks are taken back in the same transaction. Returns one result
   * per write, in order; a conflict does not affect the others. A definition that can never fire throws, and then nothing of
   * the batch is written.
   */
  put(writes: readonly ScheduleWrite[]): Promise<readonly PutResult[]>
  get(id: string): Promise<Schedule | undefined>
  /** In order of id. */
  list(query: ScheduleQuery): Promise<Page<Schedule>>
  /** How many schedules have ids with a prefix. Counting stops at the limit. */
  count(query: CountQuery): Promise<number>
  /** Deletes schedules. Their unclaimed ticks are taken back, and their runs between two attempts are cancelled. */
  remove(ids: readonly string[], ifVersion?: number): Promise<readonly RemoveResult[]>
  /**
   * Puts some schedules and removes others, in one transaction where the store has transactions. Other stores decide all
   * puts before they write any, and write all before they remove any; repeating an interrupted call completes it. No id may
   * be in both lists.
   */
  apply(writes: readonly ScheduleWrite[], removals: readonly string[]): Promise<readonly PutResult[]>
  /** By `decidePause`. Pausing a paused schedule changes its note. Undefined when the schedule does not exist. */
  pause(id: string, note: string | undefined): Promise<Schedule | undefined>
  /** By `decideResume`. Undefined when the schedule does not exist. A schedule that is not paused stays as it is. */
  resume(id: string): Promise<Schedule | undefined>
  /**
   * Takes up to `limit` schedules that are due within the look-ahead, plans each with the store's now, and records ticks,
   * skips and cursor. Instances that advance at the same time take different schedules. A plan is written only if the
   * schedule and its unfinished runs are still those that it was made from. Otherwise the schedule stays due.
   * A tick is unique by (schedule, instant): recording it again changes nothing.
   */
  advance(request: AdvanceRequest): Promise<AdvanceResult>
  /** The ranges of skipped ticks that overlap [from, to], oldest first. */
  skips(schedule: string, from: number, to: number, limit: number): Promise<readonly SkipRange[]>
}

export interface ScheduleWrite {
  readonly id: string
  readonly definition: ScheduleDefinition
  /** Write only over this version; 0: only if the schedule does not exist. */
  readonly ifVersion?: number
}

export type PutResult =
  | { readonly outcome: 'created' | 'updated' | 'unchanged'; readonly schedule: Schedule }
  | { readonly outcome: 'conflict'; readonly schedule: Schedule | undefined }

export type RemoveResult = 'removed' | 'missing' | 'conflict'

/** The cost of counting is bounded by the limit, and does not grow with the store. */
export interface CountQuery {
  readonly prefix: string
  readonly limit: number
}

export interface ScheduleQuery {
  readonly prefix?: string
  readonly after?: string
  readonly limit: number
  readonly state?: ScheduleState
  readonly job?: string
  readonly sink?: string
  readonly app?: string
  /** Only schedules whose key has yet to be computed. */
  readonly unstamped?: boolean
  readonly look?: number
}

export type Planner = (schedule: Plannable, unfinished: readonly Unfinished[], now: number, horizon: number) => Plan

export interface AdvanceRequest {
  readonly limit: number
  readonly lookaheadMs: number
  readonly plan: Planner
}

export interface AdvanceResult {
  readonly now: number
  /** How many schedules were taken. If it equals the limit, more may be due. */
  readonly schedules: number
  readonly recorded: number
  readonly skipped: number
  /** The earliest remaining `dueAt`; absent when no schedule is active. */
  readonly nextDueAt?: number
  /** The error of a part of the store that could not be used. The rest of the result covers the other parts. */
  readonly damage?: Error
}

// ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface RunStore {
  /**
   * Creates runs, all or none. A run that its dedupe key or exclusive key refuses is an outcome, not an error. Returns
   * one result per run, in order. With `tx`, the caller's transaction on the same database, the runs become visible
   * when it commits.
   */
  enqueue(runs: readonly NewRun[], tx?: unknown): Promise<readonly EnqueueResult[]>
  /**
   * Starts runs that are ready: highest priority first, then the oldest `readyAt`, then the oldest run.
   *
   * A first attempt past its `startBy` is skipped: as `deadline` if the schedule's deadline set that instant, as
   * `missed` if the missed policy did. A first attempt that meets a busy key is skipped as `busy` or waits, by the
   * key's `whenBusy`. A keyed run never starts before an older due run of the same key. A started run has a new token
   * by `nextToken` and, if it has a key, a lease under the key's name with that token. Nothing starts while the store
   * is frozen, or for an instance whose lease has expired.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>
  /**
   * Ends attempts. Only an attempt that failed, whether retried or not, adds to the run's `failures`. The result is
   * `stale`, and nothing changes, when the token is not the run's newest, the run is not running, or its key was lost.
   * The same transaction frees the key, and makes the next run that waits for the key or the schedule ready. A repeated
   * settlement is `settled` while the run is in the history.
   */
  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]>
  get(id: string): Promise<Run | undefined>
  /** Newest first. */
  list(query: RunQuery): Promise<Page<Run>>
  /** How many runs that have not ended belong to owners (`ownerOf`) with a prefix. Counting stops at the limit. */
  count(query: CountQuery): Promise<number>
  /**
   * For each job and sink: how many runs are due, and the ready instant of the oldest. To bound its cost, a store may stop
   * counting at `limit` for each priority, and at `MAX_BACKLOG_QUEUES` combinations of job or sink and priority.
   */
  backlog(limit: number): Promise<Backlog>
  /** Whether fewer than `limit` runs of a key are due or executing. */
  available(key: string, limit: number): Promise<boolean>
  /** Cancels a run that is not running; asks a running one to cancel. */
  cancel(id: string): Promise<CancelResult>
  /** Makes a failed, cancelled or skipped run ready again. Its attempts are counted from the start. */
  retry(id: string): Promise<RetryResult>
  /** Sets the keys of runs that wait for a stamp. An undefined key means that the job is not exclusive. */
  stamp(stamps: readonly Stamp[]): Promise<void>
  /**
   * Takes over the runs of dead instances: each is fenced, its key is freed, and it becomes ready again, or cancelled if that
   * was requested, or failed as `LOST` after `MAX_TAKEOVERS`. Also makes the oldest waiter of each free key or schedule
   * ready.
   */
  rescue(limit: number): Promise<RescueResult>
  /**
   * Commits a handler's own writes together with the success of its run. It runs `work` in a transaction, whose last
   * statement marks the run as succeeded with the returned value if the attempt still has the run, by token, state and
   * holder of the key. Otherwise the transaction is rolled back, and the result is `stale`.
   *
   * The run stays `running` until the handler has returned, and keeps its key and its place in the schedule: a handler that
   * still works must not overlap its successor. After the commit, whatever ends the attempt ends the run as succeeded: a
   * settlement with any outcome (which is `settled`), a takeover, a reset, a cancel. A repetition with the same token
   * returns the first value and does nothing.
   *
   * The value must be JSON. A store with synchronous transactions refuses work that returns a promise. On other stores the
   * signal ends work that hangs: the transaction is rolled back, and the signal's reason is thrown.
   */
  transact?(attempt: AttemptRef, work: (tx: unknown) => unknown, signal?: AbortSignal): Promise<TransactResult>
  /**
   * Deletes history beyond age or count, and expired records, up to a limit. Cursors stay. Returns how many were deleted.
   */
  prune(request: PruneRequest): Promise<number>
}

/**
 * `duplicate`: another unfinished run has the dedupe key, or is the same backfill. `busy`: another unfinished run has the
 * exclusive key.
 */
export const ENQUEUE_OUTCOMES = ['enqueued', 'duplicate', 'busy'] as const

export interface EnqueueResult {
  readonly outcome: (typeof ENQUEUE_OUTCOMES)[number]
  /** The new run, or the existing run that kept it from being made. */
  readonly run: string
}

export interface ClaimRequest {
  readonly instance: string
  /**
   * The number of the claim, which grows with each claim of the instance. Several may be in flight: see
   * `BeatRequest.claimsSettled`.
   */
  readonly claim: number
  /** How many runs the instance can start now. */
  readonly limit: number
  /** The jobs of this instance, and how many more runs of each it can start. */
  readonly jobs: readonly Capacity[]
  readonly sinks: readonly Capacity[]
  readonly floor: number
}

export interface Capacity {
  readonly name: string
  readonly limit: number
}

/** A run as its claim returns it. */
export type ClaimedRun = Run & { readonly token: number; readonly startedAt: number }

/** A run that a claim skipped. The target is without the options of the run. */
export interface SkippedRun extends Pick<Run, 'id' | 'target' | 'origin' | 'schedule' | 'tick'> {
  readonly reason: SkipReason
}

export interface ClaimResult {
  readonly now: number
  readonly runs: readonly ClaimedRun[]
  /** Runs that this claim skipped instead of starting them. A repeated claim does not return them again. */
  readonly skipped: readonly SkippedRun[]
  /** The earliest `readyAt` in the future among the requested jobs and sinks; absent when there is none. */
  readonly nextReadyAt?: number
  /** The error of a part of the store that could not be used. The rest of the result covers the other parts. */
  readonly damage?: Error
}

export interface Settlement {
  readonly run: string
  readonly token: number
  readonly outcome: Outcome
}

export type SettleResult = 'settled' | 'stale'

export type TransactResult = 'stale' | { readonly result: Json }

export type CancelResult = 'cancelled' | 'requested' | 'finished' | 'missing'
export type RetryResult = 'ready' | 'refused' | 'missing'

/** The most combinations of job or sink and priority that one `backlog` call counts. */
export const MAX_BACKLOG_QUEUES = 1_000

export interface Backlog {
  readonly now: number
  /** Jobs and sinks with due runs, in no order. */
  readonly targets: readonly TargetBacklog[]
}

export interface TargetBacklog {
  /** Without the options of single runs. */
  readonly target: Target
  readonly due: number
  /** Counting stopped at the limit: at least `due` runs are due. */
  readonly more: boolean
  readonly oldestReadyAt: number
}

export interface Stamp {
  readonly run: string
  readonly key: Run['key'] | undefined
}

export interface RescueResult {
  readonly rescued: number
  readonly lost: number
}

export interface PruneRequest {
  /** Ended runs, skips and finished schedules older than this. */
  readonly maxAgeMs: number
  /** Ended runs beyond this many, oldest first. */
  readonly maxRuns: number
  /** Names of leases that were freed longer ago than this. */
  readonly leaseAgeMs: number
  /** The most rows to delete. */
  readonly limit: number
}

export interface RunQuery {
  readonly after?: string
  readonly limit: number
  /** Only runs whose owner (`ownerOf`) begins with this. */
  readonly prefix?: string
  readonly schedule?: string
  readonly tick?: number
  readonly job?: string
  readonly sink?: string
  readonly key?: string
  readonly states?: readonly RunState[]
  readonly waitsFor?: Run['waitsFor']
  readonly look?: number
}

// ── Leases ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface LeaseStore {
  /**
   * Takes a permit that is free, expired, or already this holder's. The holder's own lease is extended with the same token,
   * even if it has expired and others wait.
   *
   * A loser with `waitMs` has a place in the waiter queue for that long, and keeps it by asking again. The operation that
   * frees the lease hands it to the oldest waiter whose place has not expired. A lease that was handed over lasts until that
   * place would have expired, or for its TTL if that is shorter. When the waiter asks again, the lease is extended to the
   * full TTL. So dead waiters, however many, delay the others by no more than the duration of one place. A store may grant
   * the full TTL at once to a waiter of an instance that it knows to live.
   */
  acquire(request: AcquireRequest): Promise<AcquireResult>
  /** Extends leases, also expired ones that no other holder has taken. Undefined for a lease that is no longer the holder's. */
  renew(requests: readonly RenewRequest[]): Promise<readonly (Lease | undefined)[]>
  /**
   * Releases the lease, or the place in its queue. False when the holder had neither. An expired lease that no other holder
   * has taken is still its holder's, so `true` means that no other holder had the name meanwhile. Throws when a repetition
   * cannot tell whether an earlier call with a lost reply released the lease.
   */
  release(request: ReleaseRequest): Promise<boolean>
  /** The current holders of a name. */
  inspect(name: string): Promise<readonly Lease[]>
  /** In order of name. */
  list(query: { readonly prefix?: string; readonly after?: string; readonly limit: number }): Promise<Page<Lease>>
  /**
   * Takes a lease from all its holders, for operators. A run that held it is fenced and taken over. Returns the number
   * of holders.
   */
  reset(name: string): Promise<number>
}

// ── Instances ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface InstanceStore {
  join(info: InstanceInfo, leaseMs: number): Promise<{ readonly now: number }>
  /**
   * Extends the lease of the instance and the keys of its runs. Refused after another instance took over. Runs of answered
   * claims that the beat does not list never reached the instance (the claim's reply was lost); they become ready again.
   */
  beat(request: BeatRequest): Promise<BeatResult>
  /** Ends the instance. Its runs are ready again at once. */
  leave(instance: string): Promise<void>
  list(): Promise<readonly Instance[]>
  /** Jobs that instances run or ran before. */
  jobs(): Promise<readonly JobInfo[]>
  /** The sets of schedules that instances of an app declare. */
  declarations(app: string): Promise<readonly DeclaredSet[]>
  /** Records a set of declarations. A repeated call keeps `firstSeenAt`. */
  declare(app: string, set: Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>): Promise<void>
}

export interface DeclaredSet {
  readonly hash: string
  readonly release?: string
  readonly schedules: readonly string[]
  readonly firstSeenAt: number
  /** The newest beat of an instance with this set. */
  readonly aliveAt: number
}

// ── Records ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface RecordStore {
  /**
   * Writes a record; with `ifAbsent` only if there is none. Returns the stored record and whether this call wrote it. After a
   * lost reply a repetition with `ifAbsent` finds its own record, which the writer recognises by the body.
   */
  put(write: RecordWrite): Promise<RecordPutResult>
  get(kind: string, id: string): Promise<StoredRecord | undefined>
  /** The records of a kind, in order of id. */
  list(query: RecordQuery): Promise<Page<StoredRecord>>
  remove(kind: string, id: string): Promise<boolean>
}

export interface RecordPutResult {
  readonly written: boolean
  readonly record: StoredRecord
}
