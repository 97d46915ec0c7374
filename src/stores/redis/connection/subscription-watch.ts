/**
 * Watches over the connection that listens for hints. It sends nothing, so it would never notice that nothing arrives over
 * it any more. When it has been quiet for a while, this process publishes a word on the channel, and if that is not heard
 * either, the connection is replaced. Others' words count as well, so among many processes few have to speak.
 */
import { type Clock, NO_ALARM, setAlarm } from '../../../core/clock.js'

export interface SubscriptionWatchOptions {
  readonly clock: Clock
  readonly publish: () => void
  /** Told that nothing was heard. */
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

  /** Something arrived. */
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

  /** It keeps no process alive, as the connection does not. */
  #later(delayMs: number, then: () => void): void {
    this.#alarm.close()
    this.#alarm = setAlarm(this.#options.clock, delayMs, then)
    this.#alarm.unref()
  }
}
