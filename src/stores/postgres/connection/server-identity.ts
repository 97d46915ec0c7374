/**
 * Remembers which server this process has seen, to recognise an old primary. After a failover the old primary may come
 * back and take writes, and some of the connections may reach it. Each promotion begins a new timeline, with a higher
 * number. So a server is refused if its timeline is lower than the highest seen, or if its system identifier differs.
 *
 *     seen             a new connection reaches          then
 *     timeline 3       timeline 4, same identifier       it is used, and connections to timeline 3 are closed
 *     timeline 4       timeline 3, same identifier       it is closed: an old primary
 *     timeline 4       another identifier                it is closed: another cluster
 *
 * The memory ends with the process, so after a restart a process uses a server that was restored on purpose. The beat
 * thread shares the memory: it must not extend a lease on the old primary.
 */
import type { PgClient, Row } from './driver.js'
import { unusableServer } from './errors.js'

/**
 * Reads the timeline of the WAL that is being written. The control file shows a new timeline only after a checkpoint.
 */
export const IDENTITY = `select system_identifier, pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn())
  from pg_catalog.pg_control_system()`

/** The name of a WAL file begins with its timeline: eight hexadecimal digits. */
export function timelineOf([, logFile]: Row): bigint {
  return BigInt(`0x${logFile?.slice(0, 8)}`)
}

const [SYSTEM, TIMELINE] = [0, 1]
const RESTART = 'If this is the right server, restart this process'

export class ServerIdentity {
  readonly memory: SharedArrayBuffer
  readonly #seen: BigInt64Array
  readonly #timelines = new WeakMap<PgClient, bigint>()
  readonly #listeners = new Set<(message: string) => void>()
  #hasWarned = false

  constructor(memory = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.#seen = new BigInt64Array(memory)
  }

  /**
   * Calls back once when the address leads to a server that must not be used, and once more after each later failover.
   */
  onWarning = (listener: (message: string) => void): (() => void) => {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** Records the server of a new connection, given its row of `IDENTITY`. Throws if that server must not be used. */
  check(client: PgClient, row: Row): void {
    const timeline = timelineOf(row)
    const system = BigInt(row[0] ?? 0)
    const known = Atomics.compareExchange(this.#seen, SYSTEM, 0n, system)
    if (known !== 0n && known !== system) {
      throw this.#refused(
        `the address of the Postgres database leads to another server: its system identifier is ${system}, and was ${known} before. ${RESTART}`,
      )
    }
    const highest = this.#highest
    if (timeline < highest) {
      throw this.#refused(
        `the address of the Postgres database leads to an old primary: it is on timeline ${timeline}, and timeline ${highest} has been seen. Stop that server, or take it out of the address. ${RESTART}`,
      )
    }
    if (timeline > highest) {
      Atomics.store(this.#seen, TIMELINE, timeline)
      this.#hasWarned = false
    }
    this.#timelines.set(client, timeline)
  }

  /** Whether a newer primary has been seen since this connection was opened. */
  isOutdated(client: PgClient): boolean {
    return (this.#timelines.get(client) ?? this.#highest) < this.#highest
  }

  get #highest(): bigint {
    return Atomics.load(this.#seen, TIMELINE)
  }

  #refused(message: string): Error {
    if (!this.#hasWarned) for (const listener of [...this.#listeners]) listener(message)
    this.#hasWarned = true
    return unusableServer(message)
  }
}
