import { statSync } from 'node:fs'
import { failure } from '../../../core/errors.js'

/**
 * Notices that the file was deleted or replaced while it is in use. The process could go on writing to the old file, and no other
 * process would see that. So each operation checks the path, and fails until the opened file is back.
 */
export class FileIdentity {
  readonly #path: string
  readonly #opened: string | undefined

  /** To be called right after the file was opened. */
  constructor(path: string) {
    this.#path = path
    this.#opened = identityOf(path)
  }

  /** Throws while the path leads to another file, or to none. */
  check(): void {
    const found = identityOf(this.#path)
    if (found !== this.#opened) throw moved(this.#path, found === undefined)
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
