import { statSync } from 'node:fs'
import type { Clock } from '../../../core/clock.js'
import { failure } from '../../../core/errors.js'

/** How often the path of a file that is in use is checked. */
const LOOK_MS = 500

/**
 * Notices that the file was deleted or replaced while it is in use. The process could go on writing to the old file, and no other
 * process would see that. So the path is checked every half second, and operations fail until the opened file is back.
 */
export class FileIdentity {
  readonly #path: string
  readonly #clock: Clock
  readonly #opened: string | undefined
  #lookedAt: number
  #found: string | undefined

  /** To be called right after the file was opened. */
  constructor(path: string, clock: Clock) {
    this.#path = path
    this.#clock = clock
    this.#opened = identityOf(path)
    this.#found = this.#opened
    this.#lookedAt = clock.monotonic()
  }

  /** Throws while the path leads to another file, or to none. */
  check(): void {
    if (this.#clock.monotonic() - this.#lookedAt >= LOOK_MS) this.look()
    if (this.#found !== this.#opened) throw moved(this.#path, this.#found === undefined)
  }

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
