import type { Connection } from './connection.js'

const READ = 'select version, queued, ended, kept from belfry_counters where id = 1'
const WRITE = 'update belfry_counters set version = ?, queued = ?, ended = ?, kept = ? where id = 1'

/** Numbers that only grow, and the size of the history: read once a transaction, and written once if they changed. */
export class Counters {
  readonly #db: Connection
  #values: [version: number, queued: number, ended: number, kept: number] | undefined
  #changed = false

  constructor(db: Connection) {
    this.#db = db
  }

  /** How many ended runs are in the history. */
  get kept(): number {
    return this.#read()[3]
  }

  /** The last version that a schedule was given. */
  get version(): number {
    return this.#read()[0]
  }

  /** The place of the schedule that was last put in line. */
  get queued(): number {
    return this.#read()[1]
  }

  nextVersion(): number {
    return this.#next(0)
  }

  nextQueued(): number {
    return this.#next(1)
  }

  /** The place of a run among those that ended. It is kept, and counted. */
  nextEnded(): number {
    this.#read()[3] += 1
    return this.#next(2)
  }

  /** So many places at once; answers the first of them. */
  reserveEnded(count: number): number {
    const first = this.nextEnded()
    const values = this.#read()
    values[2] += count - 1
    values[3] += count - 1
    return first
  }

  forgetEnded(count: number): void {
    this.#read()[3] -= count
    this.#changed = true
  }

  flush(): void {
    if (this.#values !== undefined && this.#changed) this.#db.run(WRITE, ...this.#values)
    this.#changed = false
  }

  #next(which: 0 | 1 | 2): number {
    const values = this.#read()
    values[which] += 1
    this.#changed = true
    return values[which]
  }

  #read(): [number, number, number, number] {
    this.#values ??= this.#load()
    return this.#values
  }

  #load(): [number, number, number, number] {
    const [version = 0, queued = 0, ended = 0, kept = 0] = this.#db.get<[number, number, number, number]>(READ) ?? []
    return [version, queued, ended, kept]
  }
}
