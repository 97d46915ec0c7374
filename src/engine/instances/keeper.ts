/**
 * The keeper proves that this instance lives. Each beat extends the instance's lease in the store, and with it the
 * claims and keys of all attempts that run here.
 *
 * Trust starts when a beat is sent, not when its reply arrives: a beat that was sent at T is good until T + lease −
 * margin, by the local monotonic clock. Without a newer beat by then (store unreachable, process stopped, machine
 * asleep), the store may soon give the work to other instances, so all attempts here are aborted before it does. The
 * margin covers the difference between the speeds of two clocks.
 *
 *   beat sent     beat sent                     trust ends       lease expires
 *   ────┼─────────────┼─────────────────────────────┼──────────────────┼────▶
 *       T1            T2      no reply any more     T2 + 0.9 lease     T2 + lease
 *
 * What each step survives:
 * - The reply to a beat is lost: the beat is repeated, and a second extension does no harm.
 * - The main loop is blocked: the beat thread sends beats (`beat-thread.ts`), and they count here too.
 * - The main loop was blocked past the end of trust: only the store knows whether the lease still holds. One more beat
 *   is sent. Attempts are aborted only if the store refuses it or does not answer soon.
 * - The store declared the instance dead, and refuses the beat. All attempts are aborted, and the instance rejoins
 *   under a new id, so that late calls under the old id are refused.
 * - The store reports that the proof of life is lost (`onLost`): all attempts are aborted at once, and the instance
 *   rejoins.
 * - The store reports one attempt as lost: only that attempt is aborted.
 */
import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { InstanceInfo } from '../../core/instances/instance.js'
import type { TokenFloor } from '../../core/locks/token.js'
import type { Logger } from '../../core/logger.js'
import type { Store } from '../../core/store.js'
import type { Events } from '../events.js'
import type { Attempt } from '../runs/attempt.js'
import { ABORT_WINDOW_MS } from '../runs/worker.js'
import { type BeatThread, BeatTimes } from './beat-thread.js'
import { LostWrites } from './lost-writes.js'
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
  readonly describe: () => Pick<InstanceInfo, 'host' | 'pid'>
  /** Called when the next beat must be sent at once. */
  readonly onBeatWanted: () => void
}

/** A timer that fires this late was held up by a blocked event loop. */
export const HELD_UP_MS = 100
/** After a block one beat decides whether the lease still holds. The store has this long to answer it. */
const LAST_BEAT_MS = 1_000

/** How long a lease is trusted: 0.9 of it, because the clocks of the process and the store may differ in speed. */
export function trustMs(leaseMs: number): number {
  return leaseMs * 0.9
}

export class Keeper {
  readonly #options: KeeperOptions
  readonly #lostWrites: LostWrites
  #cancelDeadline = () => {}
  #times = new BeatTimes()
  /** Whether the beat that decides after a block is in flight. */
  #isLastBeat = false
  #stopped = false

  constructor(options: KeeperOptions) {
    this.#options = options
    this.#lostWrites = new LostWrites(options)
  }

  /** One step of the loop: joins the store, or, once joined, sends a beat and acts on the answer. */
  async keepAlive(): Promise<number> {
    return this.#options.membership.joined ? this.#beat() : this.#join()
  }

  async #join(): Promise<number> {
    const { membership, leaseMs, heartbeatMs, clock, beatThread } = this.#options
    const sentAt = clock.monotonic()
    this.#lostWrites.joined(await membership.join())
    if (!membership.joined) return 0
    this.#times = beatThread.startBeats(membership.id, leaseMs, heartbeatMs, sentAt)
    this.#watchDeadline()
    return heartbeatMs
  }

  async #beat(): Promise<number> {
    const { membership, leaseMs, heartbeatMs, clock, store, floor } = this.#options
    const sentAt = clock.monotonic()
    const attempts = [...this.#options.attempts().values()].filter(({ reason }) => reason !== 'lost')
    const { id } = membership
    const expectedNow = floor.value / 1_000
    const result = await store.instances.beat({
      instance: id,
      leaseMs,
      attempts: attempts.map(({ run }) => ({ run: run.id, token: run.token })),
      claimsSettled: this.#options.claimsSettled(),
    })
    floor.sawTime(result.now)
    // The keeper has taken a new id meanwhile, and the answer is about the old one.
    if (id !== membership.id) return 0
    if (!result.alive) return this.#rejoin('the store declared this instance dead')
    this.#lostWrites.beaten(result, expectedNow)
    this.#times.sent(sentAt)
    this.#watchDeadline()
    abortAll(attempts, new Set(result.lost), 'lost')
    abortAll(attempts, new Set(result.cancel), 'cancel')
    // A block between the beat and its answer may have used up the trust. Then the next beat follows at once.
    return this.isTrusted ? heartbeatMs : 0
  }

  /**
   * Whether the lease certainly holds. After the process was stopped (SIGSTOP, sleep of the machine), all its timers
   * are due at once, and the end of trust may not be the first to fire. So callers check this before each action that
   * other systems can see.
   */
  get isTrusted(): boolean {
    return this.#options.clock.monotonic() < this.#trustedUntil
  }

  /** Whether the instance has joined, but the store may count it as dead. */
  get isInDoubt(): boolean {
    return this.#options.membership.joined && !this.isTrusted
  }

  /** Aborts all attempts and rejoins: the store may count this instance as dead. */
  giveUp(why: string): void {
    this.#rejoin(why)
    this.#options.onBeatWanted()
  }

  stop(): void {
    this.#stopped = true
    this.#cancelDeadline()
    this.#options.beatThread.endBeats()
  }

  get #trustedUntil(): number {
    return this.#times.newest + trustMs(this.#options.leaseMs)
  }

  /** Sets the timer for the end of trust in the newest accepted beat. */
  #watchDeadline(): void {
    const { clock } = this.#options
    const deadline = this.#trustedUntil
    // A beat that was sent before the block does not prove that the lease still holds.
    if (this.#isLastBeat && !this.isTrusted) return
    this.#isLastBeat = false
    this.#cancelDeadline()
    // The reply to the last beat may arrive after stop().
    if (this.#stopped) return
    this.#cancelDeadline = clock.after(deadline - clock.monotonic(), () => this.#deadlinePassed(deadline))
  }

  #deadlinePassed(deadline: number): void {
    const { clock, heartbeatMs, onBeatWanted } = this.#options
    if (this.isTrusted || clock.monotonic() - deadline < HELD_UP_MS) {
      this.#keepOrGiveUp()
      return
    }
    this.#isLastBeat = true
    this.#cancelDeadline = clock.after(Math.min(heartbeatMs, LAST_BEAT_MS), () => this.#keepOrGiveUp())
    onBeatWanted()
  }

  /** The beat thread may have extended the lease meanwhile. */
  #keepOrGiveUp(): void {
    if (this.isTrusted) this.#watchDeadline()
    else this.giveUp(`no beat has reached the store for ${Math.round(trustMs(this.#options.leaseMs))} ms`)
  }

  /** Aborts all attempts and takes a new id. */
  #rejoin(why: string): number {
    const { membership, log, events } = this.#options
    this.#cancelDeadline()
    this.#isLastBeat = false
    this.#times = new BeatTimes()
    this.#options.beatThread.endBeats()
    const attempts = this.#options.attempts()
    const fields = { instance: membership.id, attempts: attempts.size }
    // Without attempts nothing is lost, and the outage itself is logged already.
    if (attempts.size > 0) log.warn(fields, `lost the lease: ${why}; aborting what runs here and joining anew`)
    else log.info(fields, `lost the lease: ${why}; joining anew`)
    events.emit('instance:lost', { instance: membership.id })
    for (const attempt of attempts.values()) attempt.abort('lost', ABORT_WINDOW_MS)
    membership.renew()
    return 0
  }
}

/**
 * `attempts` are those that the beat listed. A run that came back under a newer token meanwhile has another attempt,
 * which goes on.
 */
function abortAll(attempts: readonly Attempt[], runs: ReadonlySet<string>, reason: 'lost' | 'cancel'): void {
  for (const attempt of attempts) if (runs.has(attempt.run.id)) attempt.abort(reason, ABORT_WINDOW_MS)
}

/** Three heartbeats must fit into a lease, so that one lost beat does not end it. */
export function checkHeartbeat(heartbeatMs: number, leaseMs: number, where: string): void {
  if (heartbeatMs < 1) throw failure('OPTION_INVALID', `${where}: a heartbeat must be at least 1 ms`)
  if (heartbeatMs * 3 <= leaseMs) return
  throw failure(
    'OPTION_INVALID',
    `${where}: a heartbeat of ${heartbeatMs} ms is too slow for a lease of ${leaseMs} ms: at most a third (${Math.floor(leaseMs / 3)} ms)`,
  )
}
