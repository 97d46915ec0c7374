import { statSync } from 'node:fs'
import type { Clock } from '../../../core/clock.js'
import { failure } from '../../../core/errors.js'

/** How often the path of a file that is in use is checked. */
const LOOK_MS = 500

/**
 * Tells the file that was opened from another one at the same path. A process whose file was deleted or replaced could go on
 * writing to it, and no other process would ever see that. So the path is checked now and then, and operations fail until the
 * file is back.
 */
export class FileIdentity {
  readonly #path: string
  readonly #clock: Clock
  readonly #opened: string | undefined
  #lookedAt: number
  #found: string | undefined

  /** Create it when the file has just been opened. */
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

/** Undefined when there is no file, or it cannot be read. */
function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
