/**
 * How the operations of a process share the file's one writer.
 *
 * Operations that come in the same turn of the event loop, or while the file is busy, share a transaction and its one sync to
 * disk. Each has a savepoint of its own, so that one that throws rolls back nothing else. After 10 ms the transaction ends, and
 * the event loop has its turn.
 *
 * An operation that is long because it must be atomic, such as ten thousand runs in one call, is done in steps. Between them
 * the event loop has its turns while the transaction stays open, and reads of this process wait for its end.
 */
import { setImmediate } from 'node:timers/promises'
import { sleep } from '../../../core/clock.js'
import type { Hint } from '../../../core/connection/hint.js'
import type { Connection } from './connection.js'
import { fileError, isBusy } from './errors.js'
import type { FileOptions, SqliteFile } from './file.js'
import { newTx, type Tx } from './tx.js'

/** An operation in steps: it yields where the event loop may have a turn. */
export type Steps<Result> = Generator<undefined, Result, undefined>

/** One step for each item. */
export function* stepwise<Item, Result>(items: readonly Item[], step: (item: Item) => Result): Steps<Result[]> {
  const results: Result[] = []
  for (const item of items) {
    results.push(step(item))
    yield
  }
  return results
}

/** Runs all steps without a pause. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  let step = steps.next()
  while (!step.done) step = steps.next()
  return step.value
}

type Work<Result> = (tx: Tx) => Steps<Result>

interface Pending {
  readonly work: Work<unknown>
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
}

type Done = { readonly result: unknown } | { readonly error: unknown }

/** How long one turn of the event loop may write. */
const TURN_MS = 10
/** The gap for other writers after a transaction: half as long as the transaction took, within these bounds. */
const GAP_MS = [4, 50] as const

export class WriteQueue {
  readonly #db: Connection
  readonly #options: FileOptions
  readonly #file: Pick<SqliteFile, 'now' | 'patiently' | 'contended'>
  #queue: Pending[] = []
  #flushing: Promise<void> | undefined
  /** Resolves when the transaction ends that is open between turns; undefined when there is none. */
  #open: Promise<void> | undefined
  /** How long the last transaction kept other processes from writing. */
  #heldMs = 0
  /** When we first used the file in this turn of the event loop. */
  #turnAt: number | undefined

  constructor(db: Connection, options: FileOptions, file: Pick<SqliteFile, 'now' | 'patiently' | 'contended'>) {
    this.#db = db
    this.#options = options
    this.#file = file
  }

  add<Result>(work: Work<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as Pending['resolve'], reject })
      this.#flushing ??= this.#flush()
    })
  }

  async drained(): Promise<void> {
    await this.#flushing
  }

  /** Runs at once, or after the transaction that is open between turns. */
  between<Result>(work: () => Result): Result | Promise<Result> {
    if (this.#open !== undefined) return this.#open.then(() => this.between(work))
    this.#noteTurn()
    return work()
  }

  async breathe(): Promise<void> {
    if (this.#turnIsOver()) await this.#nextTurn()
  }

  async #flush(): Promise<void> {
    // Operations of the same turn share a transaction.
    await Promise.resolve()
    const { clock } = this.#options
    while (this.#queue.length > 0) {
      await this.breathe()
      this.#heldMs = 0
      try {
        await this.#file.patiently(() => this.#commitGroup())
      } catch (error) {
        for (const { reject } of this.#queue.splice(0)) reject(error)
      }
      if (this.#file.contended) await sleep(clock, Math.min(Math.max(this.#heldMs / 2, GAP_MS[0]), GAP_MS[1]))
    }
    this.#flushing = undefined
  }

  /** One transaction for the operations at the head of the queue, mostly within one turn. */
  #commitGroup(): Promise<void> | undefined {
    const group = this.#writeGroup([...this.#queue])
    return group.next().done ? undefined : this.#goOn(group)
  }

  /** The rest of a transaction that takes several turns. */
  async #goOn(group: Steps<void>): Promise<void> {
    let ended = (): void => {}
    this.#open = new Promise((resolve) => {
      ended = resolve
    })
    try {
      do {
        await this.#nextTurn()
        this.#noteTurn()
      } while (!group.next().done)
    } finally {
      this.#open = undefined
      ended()
    }
  }

  /** Operations leave the queue only after the commit, so that they are repeated when the file is busy. */
  *#writeGroup(group: readonly Pending[]): Steps<void> {
    const { announce, clock, path } = this.#options
    const wakes = new Set<Hint>()
    const done: Done[] = []
    this.#db.begin()
    const begunAt = clock.monotonic()
    this.#noteTurn()
    try {
      for (const { work } of group) {
        done.push(yield* this.#perform(work, wakes))
        if (this.#turnIsOver()) break
      }
      this.#db.exec('commit')
    } catch (error) {
      this.#rollBack()
      throw error
    } finally {
      this.#heldMs = clock.monotonic() - begunAt
    }
    for (const outcome of done) {
      const pending = this.#queue.shift()
      if ('error' in outcome) pending?.reject(fileError(outcome.error, path))
      else pending?.resolve(outcome.result as never)
    }
    announce(wakes)
  }

  *#perform(work: Work<unknown>, wakes: Set<Hint>): Steps<Done> {
    const tx = newTx(this.#db, this.#file.now(), wakes)
    this.#db.exec('savepoint belfry')
    try {
      const steps = work(tx)
      let step = steps.next()
      for (; !step.done; step = steps.next()) if (this.#turnIsOver()) yield
      this.#options.beforeCommit(tx)
      this.#db.exec('release belfry')
      return { result: step.value }
    } catch (error) {
      // Some errors have already rolled back the whole transaction.
      if (isBusy(error) || this.#db.driver.inTransaction === false) throw error
      this.#db.exec('rollback to belfry; release belfry')
      return { error }
    }
  }

  #rollBack(): void {
    try {
      this.#db.exec('rollback')
    } catch {
      // There was nothing left to roll back.
    }
  }

  /** Notes when we first used the file in this turn of the event loop. Operations that only await promises share a turn. */
  #noteTurn(): void {
    if (this.#turnAt !== undefined) return
    this.#turnAt = this.#options.clock.monotonic()
    void this.#nextTurn()
  }

  #turnIsOver(): boolean {
    return this.#turnAt !== undefined && this.#options.clock.monotonic() - this.#turnAt >= TURN_MS
  }

  async #nextTurn(): Promise<void> {
    await setImmediate()
    this.#turnAt = undefined
  }
}
