/**
 * The store contract: everything that is shared between instances, as high-level atomic operations.
 *
 * Rules that hold for all of it:
 * - Each operation is atomic, and short: it either happened or it did not, and it holds nothing afterwards.
 * - Time is the store's own. Operations that depend on it answer with the `now` that they used.
 * - Losing is a value, failing throws. An operation that threw may still have been applied (the reply was lost): each
 *   is therefore safe to repeat, and the repetition of one that was applied changes nothing more. Only an `enqueue`
 *   without a dedupe key makes another run when it is repeated: its caller decides.
 * - Every write by an attempt carries its token, and is refused as stale when the token is not the newest.
 * - Wake-ups are hints. All of it works by polling alone.
 *
 * `testing/store-contract.ts` is this page as tests; a store is done when they pass.
 */
import type { NoSource, StoreSource } from './beat-store.js'
import type { Check } from './diagnosis.js'
import type { AttemptRef, BeatRequest, BeatResult, Instance, InstanceInfo, JobInfo } from './instance.js'
import type { Json } from './json.js'
import type { AcquireRequest, AcquireResult, Lease, ReleaseRequest, RenewRequest } from './lease.js'
import type { Plan, Plannable, SkipRange, Unfinished } from './plan.js'
import type { RecordQuery, RecordWrite, StoredRecord } from './record.js'
import type { NewRun, Outcome, Run, RunState, Target } from './run.js'
import type { Schedule, ScheduleDefinition, ScheduleState } from './schedule.js'

export interface Store {
  readonly supports: StoreSupports
  readonly schedules: ScheduleStore
  readonly runs: RunStore
  readonly leases: LeaseStore
  readonly instances: InstanceStore
  readonly records: RecordStore

  open(): Promise<void>
  close(): Promise<void>
  now(): Promise<number>
  /**
   * Hints that something changed; the returned function unsubscribes. A store without wake-ups hints at the most at what
   * was done through this same handle. A schedule that is put is hinted at if it is due soon (`isSoon`), and else nobody is
   * woken for it. A hint at a lease may name the holder that it was handed to: then it concerns nobody else.
   */
  subscribe(listener: WakeListener): () => void
  /**
   * Present where life is proven by more than the beat, so that instances which are gone are known at once. Tells when the
   * proof of this very process is lost: whatever it holds may be others' by now, so all of it is to be given up, and the
   * instance joins anew. The returned function unsubscribes.
   */
  onLost?(listener: (why: string) => void): () => void
  /**
   * How another thread of this process can open the same store, so that beats go on while this thread is blocked; or why it
   * cannot. Absent where the store lives in this thread alone.
   */
  reopen?(): StoreSource | NoSource
  /** Stops and allows starting runs, for all instances. Ticks are recorded all the same. */
  freeze(note: string | undefined): Promise<void>
  thaw(): Promise<void>
  frozen(): Promise<Frozen | undefined>
  /**
   * Looks at what only this kind of store has: its version, its indexes, its settings, its clocks. It reads little, whatever
   * is stored, and changes nothing. Absent where there is nothing of the kind.
   */
  diagnose?(): Promise<readonly Check[]>
}

export interface StoreSupports {
  /** `transaction()` in handlers. */
  readonly transactions: boolean
  /** Hints reach the other processes. */
  readonly wakeups: boolean
  /** What was acknowledged survives a crash of the store. */
  readonly durable: boolean
  /** Several processes can share it. */
  readonly shared: boolean
}

/** What to look at: due schedules, ready runs, a lock that was handed on, attempts to cancel, runs that ended. */
export const WAKES = ['schedules', 'runs', 'leases', 'attempts', 'settled'] as const
export type Wake = (typeof WAKES)[number]

export type WakeListener = (wake: Wake, holder?: string) => void

export interface Frozen {
  readonly at: number
  readonly note?: string
}

/** What a migration did, or would do. Versions are whole numbers; 0 is a place where Belfry has never been. */
export interface MigrationReport {
  readonly from: number
  readonly to: number
  /** Empty when there was nothing to do. */
  readonly sql: string
}

/**
 * A page of a list by keyset: pass `next` as `after` to go on. A limit that is no whole number from 1 on is refused, by
 * `checkPageLimit`.
 *
 * Without `look` a page is short only when it is the last, however many had to be passed over to fill it. With it, only
 * about so many are looked through: a page may then be short, or empty, and still have a next one.
 */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next?: string
}

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ScheduleStore {
  /**
   * Creates or replaces schedules, by `decidePut`, with the taking back of unclaimed ticks in the same transaction.
   * One result per write, in order; a conflict leaves the others as they are. A definition that can never fire throws
   * and nothing of the batch is written.
   */
  put(writes: readonly ScheduleWrite[]): Promise<readonly PutResult[]>
  get(id: string): Promise<Schedule | undefined>
  /** In order of id. */
  list(query: ScheduleQuery): Promise<Page<Schedule>>
  /** Takes unclaimed ticks back, cancels runs between attempts, and forgets the schedule. */
  remove(ids: readonly string[], ifVersion?: number): Promise<readonly RemoveResult[]>
  /**
   * Puts schedules and removes others, as one: in one transaction where the store has them. Elsewhere all puts are decided
   * before anything is written and done before anything is removed, and repeating it finishes one that was interrupted.
   * No id may be among both.
   */
  apply(writes: readonly ScheduleWrite[], removals: readonly string[]): Promise<readonly PutResult[]>
  /** By `decidePause`. Pausing a paused schedule changes its note. Undefined when there is no such schedule. */
  pause(id: string, note: string | undefined): Promise<Schedule | undefined>
  /** By `decideResume`. Undefined when there is no such schedule; one that is not paused is left as it is. */
  resume(id: string): Promise<Schedule | undefined>
  /**
   * Takes up to `limit` schedules that are due within the look-ahead, plans each with the store's now, and records
   * ticks, skips and cursor. Another instance that does the same at the same time takes others, or loses silently. A plan is
   * written only over what it was made from: where the schedule or its unfinished runs have changed, nothing of it is
   * written, and the schedule stays due.
   * A tick is unique by (schedule, instant): recording it again changes nothing.
   */
  advance(request: AdvanceRequest): Promise<AdvanceResult>
  /** The ranges of skipped ticks that touch a stretch of time, oldest first. */
  skips(schedule: string, from: number, to: number, limit: number): Promise<readonly SkipRange[]>
}

export interface ScheduleWrite {
  readonly id: string
  readonly definition: ScheduleDefinition
  /** Write only over this version; 0 means: only if there is none. */
  readonly ifVersion?: number
}

export type PutResult =
  | { readonly outcome: 'created' | 'updated' | 'unchanged'; readonly schedule: Schedule }
  | { readonly outcome: 'conflict'; readonly schedule: Schedule | undefined }

export type RemoveResult = 'removed' | 'missing' | 'conflict'

export interface ScheduleQuery {
  readonly prefix?: string
  readonly after?: string
  readonly limit: number
  readonly state?: ScheduleState
  readonly job?: string
  readonly sink?: string
  readonly app?: string
  /** Only those whose key waits to be stamped. */
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
  /** How many schedules were taken: as many as the limit means that more may be due. */
  readonly schedules: number
  readonly recorded: number
  readonly skipped: number
  /** The earliest `dueAt` that is left; absent when no schedule is active. */
  readonly nextDueAt?: number
}

// ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface RunStore {
  /**
   * Makes runs, all or none. Refusals by a key are values, one result per run in order. With `tx`, a transaction of the
   * caller's on the same database, they become visible when it commits.
   */
  enqueue(runs: readonly NewRun[], tx?: unknown): Promise<readonly EnqueueResult[]>
  /**
   * Starts runs that are ready: highest priority first, then the oldest `readyAt`, then the oldest run.
   *
   * On the way, a first attempt past its `startBy` is skipped as `deadline`; one that meets a busy key is skipped as
   * `busy` or waits, as its key says; a keyed run never starts before an older due run of the same key. Starting gives
   * the run a new token by `nextToken` and, if it has a key, a lease under the key's name with that token. Nothing
   * starts while the store is frozen, or for an instance that is not alive.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>
  /**
   * Ends attempts. A failure counts in `failures`, whether it is tried again or is the last; an end for other reasons does
   * not. `stale` when the token is not the run's newest, the run is not running, or its key was lost; then
   * nothing is changed. In the same transaction the key is freed and what waited for it, or for the schedule, becomes
   * ready. Settling again with the token that settled is `settled` while the run is in the history.
   */
  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]>
  get(id: string): Promise<Run | undefined>
  /** Newest first. */
  list(query: RunQuery): Promise<Page<Run>>
  /**
   * What could start now, for each job and sink: how many runs are due, and since when the oldest one is. A store may stop
   * counting at `limit` for each priority, and at `MAX_BACKLOG_QUEUES` jobs, sinks and priorities: where it costs more to
   * count more.
   */
  backlog(limit: number): Promise<Backlog>
  /** Whether fewer than `limit` runs of a key are due or executing. */
  available(key: string, limit: number): Promise<boolean>
  /** Cancels a run that is not running; asks a running one to cancel. */
  cancel(id: string): Promise<CancelResult>
  /** Makes a failed, cancelled or skipped run ready again, with all its attempts ahead. */
  retry(id: string): Promise<RetryResult>
  /** Gives runs that wait for a stamp their key, or none if their job turned out not to be exclusive. */
  stamp(stamps: readonly Stamp[]): Promise<void>
  /**
   * Takes over what dead instances ran: each run is fenced, its key freed, and it becomes ready again, or cancelled if
   * that was asked for, or failed as `LOST` after `MAX_TAKEOVERS`. Also makes ready the oldest waiter of any key or
   * schedule that nothing holds up.
   */
  rescue(limit: number): Promise<RescueResult>
  /**
   * Commits a handler's own writes together with the success of its run: does the work in a transaction and, as its
   * last statement, marks the run as succeeded with the work's value, if the attempt is still the one that has it (by
   * token, state and the holder of its key). Otherwise everything is rolled back, and the answer is `stale`.
   *
   * The run stays `running`, and with it its key and its place in the schedule, until the handler has returned: a
   * handler that still works must not meet its successor. From the commit on, whatever ends the attempt ends the run as
   * succeeded: its settlement (with any outcome, answered `settled`), a takeover, a reset, a cancel. Repeated with the
   * same token, it answers with the first value and does nothing.
   *
   * The value must be JSON. A store whose transactions are synchronous refuses work that returns a promise. In any other
   * the signal ends work that would not end by itself: it is rolled back, and the signal's reason is thrown.
   */
  transact?(attempt: AttemptRef, work: (tx: unknown) => unknown, signal?: AbortSignal): Promise<TransactResult>
  /**
   * Forgets history beyond age or count, and records that expired, in bounded steps; cursors outlive it. Answers how much
   * was forgotten.
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
  /** The new run, or the one that it lost to. */
  readonly run: string
}

export interface ClaimRequest {
  readonly instance: string
  /** Grows with each claim of an instance, several of which may be under way: see `BeatRequest.claimsSettled`. */
  readonly claim: number
  /** How many runs in all can begin at once. */
  readonly limit: number
  /** What this instance runs, with how many more of each it can begin. */
  readonly jobs: readonly Capacity[]
  readonly sinks: readonly Capacity[]
  readonly floor: number
}

export interface Capacity {
  readonly name: string
  readonly limit: number
}

/** A run that is running: its newest attempt belongs to whoever claimed it. */
export type ClaimedRun = Run & { readonly token: number; readonly startedAt: number }

export interface ClaimResult {
  readonly now: number
  readonly runs: readonly ClaimedRun[]
  /** The earliest `readyAt` still ahead among the runs that were asked for; absent when there is none. */
  readonly nextReadyAt?: number
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

/** How many combinations of a job or sink and a priority one look at the backlog tells apart. */
export const MAX_BACKLOG_QUEUES = 1_000

export interface Backlog {
  readonly now: number
  /** In no order; only those that have something due. */
  readonly targets: readonly TargetBacklog[]
}

export interface TargetBacklog {
  /** Without the options that single runs have. */
  readonly target: Target
  readonly due: number
  /** Counting stopped there: at least so many are due. */
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
  /** All but the newest so many ended runs. */
  readonly maxRuns: number
  /** Freed lease names older than this. */
  readonly leaseAgeMs: number
  /** How much to delete at the most. */
  readonly limit: number
}

export interface RunQuery {
  readonly after?: string
  readonly limit: number
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
   * Takes a permit that is free, expired, or already this holder's (then extended, with the same token, even if it has
   * expired and others wait).
   *
   * A loser with `waitMs` has a place in the queue for that long, and keeps it by asking again. The operation that frees the
   * lease hands it to the oldest waiter whose place has not expired. What was handed over lasts until that place would have
   * expired, or for its TTL if that is shorter; when the waiter asks again, it finds the lease its own and extended to the
   * full TTL. So dead waiters, however many, hold up the others for no longer than one place lasts. A store may grant the
   * full TTL at once to a waiter of an instance that it knows to live.
   */
  acquire(request: AcquireRequest): Promise<AcquireResult>
  /** Extends leases, expired ones too while nobody took them. Undefined for each that is no longer the holder's. */
  renew(requests: readonly RenewRequest[]): Promise<readonly (Lease | undefined)[]>
  /**
   * Gives the lease, or the place in its queue, back. False when the holder had neither. A lease that has expired is still
   * its holder's while nobody took it: only then has nobody else held the name since. When a repetition cannot tell whether
   * an earlier try whose reply was lost gave the lease back, it throws.
   */
  release(request: ReleaseRequest): Promise<boolean>
  /** Who holds a name now. */
  inspect(name: string): Promise<readonly Lease[]>
  /** In order of name. */
  list(query: { readonly prefix?: string; readonly after?: string; readonly limit: number }): Promise<Page<Lease>>
  /** Takes a lease from all its holders, by hand. A run that held it is fenced and taken over. Answers how many. */
  reset(name: string): Promise<number>
}

// ── Instances ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface InstanceStore {
  join(info: InstanceInfo, leaseMs: number): Promise<{ readonly now: number }>
  /**
   * Proves life, and with it extends the keys of the instance's runs. Refused once the lease has run out and somebody
   * took over. Runs that the store gave to one of its answered claims and that it does not list never arrived: they
   * become ready again.
   */
  beat(request: BeatRequest): Promise<BeatResult>
  /** Says goodbye: what it still runs is taken over at once. */
  leave(instance: string): Promise<void>
  list(): Promise<readonly Instance[]>
  /** Jobs that any live instance runs, and those that one ran before, as data. */
  jobs(): Promise<readonly JobInfo[]>
  /** The sets of schedules that an app's instances declare, with when each was first seen and last alive. */
  declarations(app: string): Promise<readonly DeclaredSet[]>
  /** Writes down a set of declarations; the first time it is seen counts. */
  declare(app: string, set: Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>): Promise<void>
}

export interface DeclaredSet {
  readonly hash: string
  readonly release?: string
  readonly schedules: readonly string[]
  readonly firstSeenAt: number
  /** When an instance with this set last proved life. */
  readonly aliveAt: number
}

// ── Records ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface RecordStore {
  /**
   * Writes a record, over one that is there unless `ifAbsent`. Answers what is there now, and whether this call wrote
   * it: a repetition after a lost reply finds its own record, which the writer knows by its body.
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
