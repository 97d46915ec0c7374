/**
 * Detects a subscription that is half-open. Its connection sends nothing, so it would never notice that nothing arrives
 * any more. After a quiet period this process publishes a test message on the channel. If that does not arrive either,
 * the connection is replaced. Messages of other processes count as well, so among many processes only a few have to
 * publish.
 */
import { type Clock, NO_ALARM, setAlarm } from '../../../core/clock.js'

export interface SubscriptionWatchOptions {
  readonly clock: Clock
  readonly publish: () => void
  /** Called when no message has arrived, not even the test message. */
  readonly onSilence: () => void
}

const SPEAK_EVERY_MS = 10_000
const HEAR_WITHIN_MS = 5_000

export class SubscriptionWatch {
  readonly #options: SubscriptionWatchOptions
  #heard = true
  #alarm = NO_ALARM

  constructor(options: SubscriptionWatchOptions) {
    this.#options = options
  }

  /** Must be called for each message that arrives. */
  heard(): void {
    this.#heard = true
  }

  start(): void {
    this.#heard = false
    this.#later(SPEAK_EVERY_MS, () => this.#listenFor())
  }

  stop(): void {
    this.#alarm.close()
  }

  #listenFor(): void {
    if (!this.#heard) this.#options.publish()
    this.#later(HEAR_WITHIN_MS, () => {
      if (!this.#heard) this.#options.onSilence()
      this.start()
    })
  }

  /** The timer does not keep the process alive, just as the subscription does not. */
  #later(delayMs: number, then: () => void): void {
    this.#alarm.close()
    this.#alarm = setAlarm(this.#options.clock, delayMs, then)
    this.#alarm.unref()
  }
}
