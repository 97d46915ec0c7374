/**
 * The way to one sink: how many messages may set out, in how many calls, and what becomes of each. Every sink has its own,
 * so that one that is slow or away holds up no other.
 */
import type { Clock } from '../../core/clock.js'
import type { Outcome } from '../../core/run.js'
import type { Delivery } from '../../core/sink.js'
import type { SinkDefinition } from '../definitions.js'
import type { Attempt } from '../runs/attempt.js'
import type { Attempts } from '../runs/attempts.js'
import { KeptKeys } from './kept-keys.js'
import { SinkCall, type Undecided, type Unreached } from './sink-call.js'
import { SinkDoubts } from './sink-doubts.js'
import type { SinkHealth, SinkOutage } from './sink-health.js'
import { noAnswer, outcomeOf } from './sink-outcome.js'

export interface SinkLaneOptions {
  readonly definition: SinkDefinition
  readonly clock: Clock
  readonly attempts: Attempts
  readonly health: SinkHealth
  readonly storeIdentity: () => string
  /** Pauses the schedule of an attempt whose receiver wants no more of it; throws when that cannot be written. */
  readonly pauseSchedule: (attempt: Attempt, note: string) => Promise<void>
  /** Whether what was claimed is still this instance's for certain. */
  readonly isTrusted: () => boolean
  /** Told when more may set out. */
  readonly onFree: () => void
}

const SOON_MS = 2
/** So many may keep their keys while they wait without taking room from others. */
const MOST_KEPT = 1_000
/** So many free calls are enough for a claim, however many there are in all. */
const ENOUGH_CALLS = 16

export class SinkLane {
  readonly #options: SinkLaneOptions
  /** Taken from the store and not yet settled. */
  #inFlight = 0
  #calls = 0
  readonly #kept: KeptKeys
  /** Messages that set out since the last failure, while few may. */
  readonly #probes = new Set<Attempt>()
  readonly #doubts = new SinkDoubts()
  /** Waits a little for more, to go in one call. */
  #gathering: Attempt[] = []
  #cancelLinger: (() => void) | undefined
  #opening: Promise<void> | undefined
  #isOpen = false
  #closed = false
  /** There was more to be had than there was room for. */
  #wantsMore = false
  #cancelAsking: (() => void) | undefined

  constructor(options: SinkLaneOptions) {
    this.#options = options
    const { definition, clock, health } = options
    health.onDecided = () => this.#decide()
    this.#kept = new KeptKeys(definition, clock, (attempt, outcome) => this.#write(attempt, outcome))
  }

  get pauseMs(): number {
    return this.#options.health.pauseMs
  }

  get outage(): SinkOutage | undefined {
    return this.#options.health.outage
  }

  /** How many more messages can set out at once. */
  get free(): number {
    const { definition, health } = this.#options
    const { allowance } = health
    if (this.#closed) return 0
    const room = (definition.concurrency - this.#calls) * definition.batch - this.#gathering.length
    const taken = this.#inFlight - Math.min(this.#kept.size, MOST_KEPT) - this.#doubts.size
    return Math.min(room, definition.inFlight - taken, allowance - this.#probes.size)
  }

  /** As many as there was room for have come, so there may be more: told as soon as there is room again. */
  wantMore(): void {
    this.#wantsMore = true
  }

  /** Opens the sink, so that what is wrong with it is known before the first message. */
  open(): void {
    void this.#open()?.catch((error: unknown) => this.#options.health.unreachable(error))
  }

  /** Takes no more, and lets nothing wait. */
  close(): void {
    this.#closed = true
    this.#cancelAsking?.()
    this.flush()
    this.#options.health.close()
    this.#release(this.#doubts.take())
    this.#kept.giveAllBack()
  }

  async end(): Promise<void> {
    const { sink } = this.#options.definition
    await this.#opening?.catch(() => {})
    if (this.#isOpen || sink.open === undefined) await sink.close?.()
  }

  add(attempt: Attempt): void {
    this.#inFlight += 1
    if (Number.isFinite(this.#options.health.allowance)) this.#probes.add(attempt)
    this.#gathering.push(attempt)
    if (this.#gathering.length >= this.#options.definition.batch) this.flush()
  }

  /** All of a claim has been added: it sets out, or waits for more. */
  gathered(): void {
    const { definition, clock, health } = this.#options
    if (this.#gathering.length === 0) return
    if (definition.lingerMs === 0 || this.#closed || Number.isFinite(health.allowance)) this.flush()
    // The first of them is not kept waiting by those that come after it.
    else this.#cancelLinger ??= clock.after(definition.lingerMs, () => this.flush())
  }

  flush(): void {
    this.#cancelLinger?.()
    this.#cancelLinger = undefined
    const attempts = this.#gathering
    if (attempts.length === 0) return
    this.#gathering = []
    // What was taken away while it waited, or may have been, is not handed over.
    if (!this.#options.isTrusted()) for (const attempt of attempts) attempt.abort('lost', 0)
    const live = attempts.filter(({ reason }) => reason === undefined)
    for (const attempt of attempts) if (attempt.reason !== undefined) this.#settleUnsent(attempt)
    if (live.length > 0) void this.#call(live)
  }

  async #call(attempts: readonly Attempt[]): Promise<void> {
    const { definition, clock, health, storeIdentity } = this.#options
    this.#calls += 1
    const call = new SinkCall({
      definition,
      clock,
      attempts,
      open: () => this.#open(),
      storeIdentity,
      onOutcome: (attempt, delivery) => this.#settle(attempt, delivery),
    })
    const { epoch } = health
    const end = await call.run()
    this.#calls -= 1
    for (const attempt of attempts) this.#probes.delete(attempt)
    if (end.reached) health.reached(epoch)
    else this.#failed(end, epoch)
    this.#decide()
  }

  #failed({ error, undecided }: Unreached, epoch: number): void {
    const { health } = this.#options
    if (health.state !== 'reachable' || !this.#doubts.areSuspects(undecided)) health.failed(error, epoch)
    this.#doubts.add(undecided)
  }

  /** What failed is charged to the messages if the sink is reachable, and to the sink if it is down. */
  #decide(): void {
    const { state } = this.#options.health
    if (state === 'doubted' && !this.#closed) this.#wantsMore = true
    else {
      const messages = this.#doubts.take()
      if (state === 'reachable') for (const { attempt, delivery } of messages) this.#settle(attempt, delivery)
      else this.#release(messages)
    }
    this.#freed()
  }

  /** They are due at once, behind all that are due already: so the next message to be tried is another one. */
  #release(messages: readonly Undecided[]): void {
    this.#doubts.suspect(messages)
    for (const { attempt, delivery } of messages) {
      const isOurs = attempt.reason === undefined || attempt.reason === 'timeout'
      const outcome = outcomeOf(this.#options.definition, attempt, delivery)
      this.#write(attempt, isOurs ? { kind: 'released' } : outcome)
    }
  }

  /** A claim for each call that ends would cost more than the call: it waits until some have, or a moment has passed. */
  #freed(): void {
    if (!this.#wantsMore) return
    const { free } = this
    if (free <= 0) return
    const { definition, clock, health } = this.#options
    if (
      Number.isFinite(health.allowance) ||
      free * 4 >= definition.concurrency * definition.batch ||
      free >= definition.batch * ENOUGH_CALLS
    )
      this.#askForMore()
    else this.#cancelAsking ??= clock.after(SOON_MS, () => this.#askForMore())
  }

  #askForMore(): void {
    this.#cancelAsking?.()
    this.#cancelAsking = undefined
    this.#wantsMore = false
    this.#options.onFree()
  }

  /** Undefined when there is nothing to wait for. */
  #open(): Promise<void> | undefined {
    const { sink } = this.#options.definition
    if (this.#isOpen || sink.open === undefined) return undefined
    this.#opening ??= Promise.resolve(sink.open()).then(
      () => {
        this.#isOpen = true
      },
      (error: unknown) => {
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }

  #settle(attempt: Attempt, delivery: Delivery): void {
    const { definition } = this.#options
    const isOurs = attempt.reason === undefined || attempt.reason === 'timeout'
    if (delivery.delivered === true) this.#doubts.absolve(attempt)
    if (delivery.delivered !== true && delivery.pauseSchedule !== undefined && isOurs) {
      void this.#pause(attempt, delivery, delivery.pauseSchedule)
    } else this.#finish(attempt, outcomeOf(definition, attempt, delivery))
  }

  /** The pause comes first: a crash in between repeats the delivery, is refused again, and pauses again. */
  async #pause(attempt: Attempt, delivery: Delivery, note: string): Promise<void> {
    const { definition, pauseSchedule } = this.#options
    try {
      await pauseSchedule(attempt, note)
      this.#finish(attempt, outcomeOf(definition, attempt, delivery))
    } catch (error) {
      this.#finish(attempt, outcomeOf(definition, attempt, { delivered: false, error }))
    }
  }

  #settleUnsent(attempt: Attempt): void {
    this.#probes.delete(attempt)
    attempt.end()
    const { definition } = this.#options
    this.#finish(attempt, outcomeOf(definition, attempt, noAnswer(definition, attempt)))
  }

  #finish(attempt: Attempt, outcome: Outcome | undefined): void {
    const { ordered } = this.#options.definition
    const isKept = ordered && attempt.run.key !== undefined && outcome?.kind === 'retry' && !this.#closed
    if (isKept) {
      this.#kept.keep(attempt, outcome)
      this.#freed()
    } else this.#write(attempt, outcome)
  }

  #write(attempt: Attempt, outcome: Outcome | undefined): void {
    this.#options.attempts.settle(attempt, outcome, () => {
      this.#inFlight -= 1
      this.#freed()
    })
  }
}
