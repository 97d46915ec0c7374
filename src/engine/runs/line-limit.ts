import { type Alarm, type Clock, setAlarm } from '../../core/clock.js'

const MOST_LINES = 5
const WITHIN_MS = 10_000

/** Limits log lines of one kind to a few in ten seconds for each name, and reports how many more there were. */
export class LineLimit {
  readonly #clock: Clock
  readonly #reportRest: (name: string, count: number) => void
  readonly #windows = new Map<string, { count: number; readonly end: Alarm }>()

  constructor(clock: Clock, reportRest: (name: string, count: number) => void) {
    this.#clock = clock
    this.#reportRest = reportRest
  }

  /** Whether this line is to be written. */
  allows(name: string): boolean {
    const window = this.#windows.get(name) ?? this.#open(name)
    window.count += 1
    return window.count <= MOST_LINES
  }

  /** Reports what is left out so far. */
  close(): void {
    for (const name of this.#windows.keys()) this.#end(name)
  }

  #open(name: string): { count: number } {
    const end = setAlarm(this.#clock, WITHIN_MS, () => this.#end(name))
    end.unref()
    const window = { count: 0, end }
    this.#windows.set(name, window)
    return window
  }

  #end(name: string): void {
    const window = this.#windows.get(name)
    if (window === undefined) return
    this.#windows.delete(name)
    window.end.close()
    if (window.count > MOST_LINES) this.#reportRest(name, window.count - MOST_LINES)
  }
}
