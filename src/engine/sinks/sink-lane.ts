/**
 * The lane of one sink: which messages are sent, in which calls, and how many more may be claimed. Every sink has its own
 * lane, so a slow or unreachable sink holds up no other.
 */
import type { SinkDefinition } from '../definitions.js'
import type { Attempt } from '../runs/attempt.js'
import { SinkCall } from './sink-call.js'
import type { SinkOutage } from './sink-health.js'
import { SinkSettler, type SinkSettlerOptions } from './sink-settler.js'

export interface SinkLaneOptions extends Omit<SinkSettlerOptions, 'onSettled' | 'onParked'> {
  readonly storeIdentity: () => string
  /** Whether the lease of this instance certainly holds. */
  readonly isTrusted: () => boolean
  /** Called when more messages may be claimed. */
  readonly onFree: () => void
}

/**
 * A claim after each ended call would cost more than the call. So the next claim waits this long, or until there is
 * room for many messages.
 */
const SOON_MS = 2
/** Room for this many calls is enough for a claim, however many calls the sink allows. */
const ENOUGH_CALLS = 16

export class SinkLane {
  readonly #options: SinkLaneOptions
  readonly #settler: SinkSettler
  readonly #opening: SinkOpening
  /** Messages that are claimed and not yet settled. */
  #inFlight = 0
  #calls = 0
  /** Messages of calls that wait for slow receivers. They take no room of others. */
  #slow = 0
  /** Messages sent while the sink's health limits their number. */
  readonly #probes = new Set<Attempt>()
  /** Messages of the next call, which may wait (`linger`) for more. */
  #gathering: Attempt[] = []
  #cancelLinger: (() => void) | undefined
  /** Whether the store may have more messages than the last claim had room for. */
  #wantsMore = false
  #cancelClaim: (() => void) | undefined
  #closed = false

  constructor(options: SinkLaneOptions) {
    this.#options = options
    this.#opening = new SinkOpening(options.definition)
    this.#settler = new SinkSettler({
      ...options,
      onSettled: () => {
        this.#inFlight -= 1
        this.#claimMore()
      },
      onParked: () => this.#claimMore(),
    })
    options.health.onDecided = () => this.#decide()
  }

  get pauseMs(): number {
    return this.#options.health.pauseMs
  }

  get outage(): SinkOutage | undefined {
    return this.#options.health.outage
  }

  /** How many more messages can be sent at once. */
  get free(): number {
    const { definition, health } = this.#options
    if (this.#closed) return 0
    const room = (definition.concurrency - this.#calls) * definition.batch - this.#gathering.length
    const inFlight = this.#inFlight - this.#settler.parked - this.#slow
    return Math.min(room, definition.inFlight - inFlight, health.allowance - this.#probes.size)
  }

  /** Requests a call of `onFree` as soon as there is room: the last claim got as many messages as it asked for. */
  wantMore(): void {
    this.#wantsMore = true
  }

  /** Opens the sink at the start, so that an outage is known before the first message. */
  open(): void {
    this.#opening.open().catch((error: unknown) => this.#options.health.unreachable(error))
  }

  /** Stops claiming, sends the gathered messages, and gives waiting messages back to the store. */
  close(): void {
    this.#closed = true
    this.#cancelClaim?.()
    this.#send()
    this.#options.health.close()
    this.#settler.close()
  }

  end(): Promise<void> {
    return this.#opening.close()
  }

  add(attempt: Attempt): void {
    this.#inFlight += 1
    if (Number.isFinite(this.#options.health.allowance)) this.#probes.add(attempt)
    this.#gathering.push(attempt)
    if (this.#gathering.length >= this.#options.definition.batch) this.#send()
  }

  /** Called when all messages of a claim are added. Sends them, or lets them linger. */
  gathered(): void {
    const { definition, clock, health } = this.#options
    if (this.#gathering.length === 0) return
    if (definition.lingerMs === 0 || this.#closed || Number.isFinite(health.allowance)) this.#send()
    // The linger time counts from the first message. Later ones do not prolong it.
    else this.#cancelLinger ??= clock.after(definition.lingerMs, () => this.#send())
  }

  #send(): void {
    this.#cancelLinger?.()
    this.#cancelLinger = undefined
    const attempts = this.#gathering
    this.#gathering = []
    // After the process was stopped, all its timers are due at once. A message whose lease may have expired must not be
    // sent.
    if (attempts.length > 0 && !this.#options.isTrusted()) for (const attempt of attempts) attempt.abort('lost', 0)
    for (const attempt of attempts) {
      if (attempt.reason === undefined) continue
      this.#probes.delete(attempt)
      this.#settler.settleUnsent(attempt)
    }
    const live = attempts.filter(({ reason }) => reason === undefined)
    if (live.length > 0) void this.#call(live)
  }

  async #call(attempts: readonly Attempt[]): Promise<void> {
    const { definition, clock, health, storeIdentity } = this.#options
    this.#calls += 1
    let isSlow = false
    const onSlow = () => {
      if (isSlow) return
      isSlow = true
      this.#calls -= 1
      this.#slow += attempts.length
      this.#claimMore()
    }
    const call = new SinkCall({
      ...{ definition, clock, attempts, storeIdentity, onSlow },
      open: () => this.#opening.open(),
      onOutcome: (attempt, delivery) => this.#settler.settle(attempt, delivery),
    })
    const { epoch } = health
    const end = await call.run()
    onSlow()
    this.#slow -= attempts.length
    for (const attempt of attempts) this.#probes.delete(attempt)
    if (end.reached) health.reached(epoch)
    else this.#settler.failed(end, epoch)
    this.#decide()
  }

  /** While the sink is in doubt, claims one more message, whose delivery decides. */
  #decide(): void {
    if (!this.#settler.decide()) this.#wantsMore = true
    this.#claimMore()
  }

  #claimMore(): void {
    const { free } = this
    if (!this.#wantsMore || free <= 0) return
    const { definition, clock, health } = this.#options
    const isMuch = free * 4 >= definition.concurrency * definition.batch || free >= definition.batch * ENOUGH_CALLS
    if (isMuch || Number.isFinite(health.allowance)) this.#claimNow()
    else this.#cancelClaim ??= clock.after(SOON_MS, () => this.#claimNow())
  }

  #claimNow(): void {
    this.#cancelClaim?.()
    this.#cancelClaim = undefined
    this.#wantsMore = false
    this.#options.onFree()
  }
}

/** Opens a sink once for all calls that need it, and again after a failure. */
class SinkOpening {
  readonly #definition: SinkDefinition
  #opening: Promise<void> | undefined
  #isOpen = false

  constructor(definition: SinkDefinition) {
    this.#definition = definition
  }

  async open(): Promise<void> {
    const { sink } = this.#definition
    if (this.#isOpen || sink.open === undefined) return
    this.#opening ??= this.#open()
    await this.#opening
  }

  async close(): Promise<void> {
    const { sink } = this.#definition
    await this.#opening?.catch(() => {})
    if (this.#isOpen || sink.open === undefined) await sink.close?.()
  }

  async #open(): Promise<void> {
    try {
      await this.#definition.sink.open?.()
      this.#isOpen = true
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }
}
