/**
 * A rush: more is due than one claim takes. Then starting it comes first. What has ended is written down, and what is to
 * come is recorded, once all that is due has been started, or after a moment: a backlog that takes longer than that is
 * worked off with everything going on at once.
 */
import type { Clock } from '../../core/clock.js'

export const RUSH_MS = 300

export class Rush {
  readonly #clock: Clock
  #state: 'calm' | 'rush' | 'too long' = 'calm'
  #cancel = () => {}
  #whenOver: (() => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** There is more to start. */
  begin(): void {
    if (this.#state !== 'calm') return
    this.#state = 'rush'
    this.#cancel = this.#clock.after(RUSH_MS, () => this.#leave('too long'))
  }

  /** There is no room to start more: what has ended makes room. */
  giveWay(): void {
    if (this.#state === 'rush') this.#leave('too long')
  }

  /** There is nothing more to start. */
  end(): void {
    if (this.#state !== 'calm') this.#leave('calm')
  }

  /** Resolves when what is due has been started, or has taken too long. */
  over(): Promise<void> {
    if (this.#state !== 'rush') return Promise.resolve()
    return new Promise((resolve) => this.#whenOver.push(resolve))
  }

  #leave(state: 'calm' | 'too long'): void {
    this.#cancel()
    this.#state = state
    for (const resolve of this.#whenOver.splice(0)) resolve()
  }
}
