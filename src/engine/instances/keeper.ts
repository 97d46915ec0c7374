/**
 * The keeper proves that this instance lives. Each beat extends the instance's lease in the store, and with it the
 * claims and keys of everything that runs here.
 *
 * Trust starts at the attempt, not at the reply: a beat that was sent at T, whenever its reply comes, is good until
 * T + lease − margin by the local monotonic clock. When that moment passes without a newer beat (store unreachable,
 * process stopped, machine asleep) the store may already have given our work to others, so everything here is aborted
 * before the store would do so. The margin covers the difference between two clocks' speeds.
 *
 * A beat thread sends beats of its own while this loop is blocked (`beat-thread.ts`); what it achieved counts here too.
 *
 * - A beat whose reply was lost: repeated; extending twice is extending once.
 * - The loop was blocked past that moment: whether the lease is still ours only the store can say. One more beat is sent,
 *   and everything is given up only if the store refuses it, or does not answer soon.
 * - Declared dead: the beat is refused. Everything is aborted and the instance joins anew under a new id, so that
 *   nothing of its former life is ever mistaken for the new one.
 * - Proven dead: where life is proven by more than the beat, the store tells at once that the proof was lost. Then it is
 *   the same as if the store had declared the instance dead.
 * - An attempt that the store no longer counts as ours: aborted alone.
 */
import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import type { Store } from '../../core/store.js'
import type { TokenFloor } from '../../core/token.js'
import type { Events } from '../events.js'
import type { Attempt } from '../runs/attempt.js'
import { ABORT_WINDOW_MS } from '../runs/worker.js'
import { type BeatThread, BeatTimes } from './beat-thread.js'
import type { Membership } from './membership.js'

export interface KeeperOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  readonly floor: TokenFloor
  readonly leaseMs: number
  readonly heartbeatMs: number
  readonly membership: Membership
  readonly attempts: () => ReadonlyMap<string, Attempt>
  readonly claimsSettled: () => number
  readonly beatThread: BeatThread
  /** Told between two beats that the next is wanted at once. */
  readonly onHurry: () => void
}

/** A timer that fires so much after its time was held up by a blocked loop. */
export const HELD_UP_MS = 100
/** How long the store has to answer the one beat that decides after a block. */
const LAST_BEAT_MS = 1_000

/** How much earlier than the store this side gives a lease up. */
export function trustMs(leaseMs: number): number {
  return leaseMs * 0.9
}

export class Keeper {
  readonly #options: KeeperOptions
  #cancelDeadline = () => {}
  #times = new BeatTimes()
  /** Whether the beat that decides after a block is under way. */
  #isLastBeat = false
  #stopped = false

  constructor(options: KeeperOptions) {
    this.#options = options
  }

  /** One step of the loop: joins if need be, beats, and acts on the answer. */
  async keepAlive(): Promise<number> {
    const { membership, leaseMs, heartbeatMs, clock, store, floor } = this.#options
    const sentAt = clock.monotonic()
    if (!membership.joined) {
      await membership.join()
      if (!membership.joined) return 0
      this.#times = this.#options.beatThread.live(membership.id, leaseMs, heartbeatMs, sentAt)
      this.#watchDeadline()
      return heartbeatMs
    }
    const attempts = [...this.#options.attempts().values()].filter(({ reason }) => reason !== 'lost')
    const { id } = membership
    const result = await store.instances.beat({
      instance: id,
      leaseMs,
      attempts: attempts.map(({ run }) => ({ run: run.id, token: run.token })),
      claimsSettled: this.#options.claimsSettled(),
    })
    floor.sawTime(result.now)
    // Given up meanwhile: what is said of the former life does not concern the new one.
    if (id !== membership.id) return 0
    if (!result.alive) return this.#rejoin('the store declared this instance dead')
    this.#times.sent(sentAt)
    this.#watchDeadline()
    abortAll(attempts, new Set(result.lost), 'lost')
    abortAll(attempts, new Set(result.cancel), 'cancel')
    // It was sent before a block, and its answer read after it.
    return this.isTrusted ? heartbeatMs : 0
  }

  /**
   * Whether what was claimed here is still ours for certain. A process that was stopped finds all its timers due at once,
   * in the order in which they were set: whoever is about to do something that others can see asks first.
   */
  get isTrusted(): boolean {
    return this.#options.clock.monotonic() < this.#trustedUntil
  }

  /** Whether this instance takes part and cannot be certain that the store counts it as alive. */
  get isInDoubt(): boolean {
    return this.#options.membership.joined && !this.isTrusted
  }

  /** The store says that this process can no longer prove that it lives. */
  giveUp(why: string): void {
    this.#rejoin(why)
    this.#options.onHurry()
  }

  stop(): void {
    this.#stopped = true
    this.#cancelDeadline()
    this.#options.beatThread.die()
  }

  get #trustedUntil(): number {
    return this.#times.newest + trustMs(this.#options.leaseMs)
  }

  /** From a beat that was accepted until the moment when trust in it ends. */
  #watchDeadline(): void {
    const { clock } = this.#options
    const deadline = this.#trustedUntil
    // The answer to a beat that was sent before the block decides nothing.
    if (this.#isLastBeat && !this.isTrusted) return
    this.#isLastBeat = false
    this.#cancelDeadline()
    // A beat that is answered after the end has nothing left to watch over.
    if (this.#stopped) return
    this.#cancelDeadline = clock.after(deadline - clock.monotonic(), () => this.#deadlinePassed(deadline))
  }

  #deadlinePassed(deadline: number): void {
    const { clock, heartbeatMs, onHurry } = this.#options
    if (this.isTrusted || clock.monotonic() - deadline < HELD_UP_MS) {
      this.#keepOrGiveUp()
      return
    }
    this.#isLastBeat = true
    this.#cancelDeadline = clock.after(Math.min(heartbeatMs, LAST_BEAT_MS), () => this.#keepOrGiveUp())
    onHurry()
  }

  /** The beat thread may have beaten meanwhile. */
  #keepOrGiveUp(): void {
    if (this.isTrusted) this.#watchDeadline()
    else this.giveUp(`no beat has reached the store for ${Math.round(trustMs(this.#options.leaseMs))} ms`)
  }

  /** Gives everything up and takes a new identity. */
  #rejoin(why: string): number {
    const { membership, log, events } = this.#options
    this.#cancelDeadline()
    this.#isLastBeat = false
    this.#times = new BeatTimes()
    this.#options.beatThread.die()
    const attempts = this.#options.attempts()
    const fields = { instance: membership.id, attempts: attempts.size }
    // With nothing at work nothing is lost, and that the store cannot be reached has been said.
    if (attempts.size > 0) log.warn(fields, `lost the lease: ${why}; aborting what runs here and joining anew`)
    else log.info(fields, `lost the lease: ${why}; joining anew`)
    events.emit('instance:lost', { instance: membership.id })
    for (const attempt of attempts.values()) attempt.abort('lost', ABORT_WINDOW_MS)
    membership.renew()
    return 0
  }
}

/** Only what the beat spoke of: a run may have come back under a newer token meanwhile. */
function abortAll(attempts: readonly Attempt[], runs: ReadonlySet<string>, reason: 'lost' | 'cancel'): void {
  for (const attempt of attempts) if (runs.has(attempt.run.id)) attempt.abort(reason, ABORT_WINDOW_MS)
}

/** A heartbeat must fit at least twice into what is left of a lease after the first. */
export function checkHeartbeat(heartbeatMs: number, leaseMs: number, where: string): void {
  if (heartbeatMs < 1) throw failure('OPTION_INVALID', `${where}: a heartbeat must be at least 1 ms`)
  if (heartbeatMs * 3 <= leaseMs) return
  throw failure(
    'OPTION_INVALID',
    `${where}: a heartbeat of ${heartbeatMs} ms is too slow for a lease of ${leaseMs} ms: at most a third (${Math.floor(leaseMs / 3)} ms)`,
  )
}
