import { statSync } from 'node:fs'
import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'

/** How often a file that is in use is looked for where it was. */
const LOOK_MS = 500

/**
 * Knows the file that was opened from another one at the same path. A process that holds a file which was deleted or
 * replaced goes on undisturbed, with a store that nobody else will ever see: so it looks now and then, and stops
 * being of use until the file is back.
 */
export class FileIdentity {
  readonly #path: string
  readonly #clock: Clock
  readonly #opened: string | undefined
  #lookedAt: number
  #found: string | undefined

  /** To be made when the file has just been opened. */
  constructor(path: string, clock: Clock) {
    this.#path = path
    this.#clock = clock
    this.#opened = identityOf(path)
    this.#found = this.#opened
    this.#lookedAt = clock.monotonic()
  }

  /** Throws while another file, or none, is where the opened one was. */
  check(): void {
    if (this.#clock.monotonic() - this.#lookedAt >= LOOK_MS) this.look()
    if (this.#found !== this.#opened) throw moved(this.#path, this.#found === undefined)
  }

  /** Looks now. */
  look(): void {
    this.#lookedAt = this.#clock.monotonic()
    this.#found = identityOf(this.#path)
  }
}

export function moved(path: string, gone: boolean) {
  const what = gone ? 'was deleted or moved away' : 'was replaced by another'
  return failure(
    'STORE_MOVED',
    `the SQLite file ${path} ${what} while it was in use: nothing more is read or written here; put it back, or restart this process to use what is there now`,
  )
}

/** Undefined when there is none, or it cannot be seen. */
function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
