/**
 * How the one writer is shared within a process.
 *
 * Writes that come while one waits, or in the same turn of the event loop, share a transaction and its one sync to disk.
 * Each has a savepoint of its own, so that one that throws takes nothing else with it. After a while the turn is given
 * up.
 *
 * A write that is long because it must be whole, such as ten thousand runs in one call, is done in steps: the turn is
 * given up between them with the transaction open, and whoever wants to read meanwhile waits for its end.
 */
import { setImmediate } from 'node:timers/promises'
import { sleep } from '../../core/clock.js'
import type { Hint } from '../../core/hint.js'
import type { Connection } from './connection.js'
import type { FileOptions, SqliteFile } from './file.js'
import { fileError, isBusy } from './file-errors.js'
import { newTx, type Tx } from './tx.js'

/** A write in steps: it yields wherever the event loop may have a turn. */
export type Steps<Result> = Generator<undefined, Result, undefined>

/** One step for each of them. */
export function* stepwise<Item, Result>(items: readonly Item[], step: (item: Item) => Result): Steps<Result[]> {
  const results: Result[] = []
  for (const item of items) {
    results.push(step(item))
    yield
  }
  return results
}

/** All steps at once. */
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

/** For how long a turn takes up more work. */
const TURN_MS = 10
/** The gap that is left to others, when there are any, before we write again: in proportion, between these. */
const GAP_MS = [4, 50] as const

export class WriteQueue {
  readonly #db: Connection
  readonly #options: FileOptions
  readonly #file: Pick<SqliteFile, 'now' | 'patiently' | 'contended'>
  #queue: Pending[] = []
  #flushing: Promise<void> | undefined
  /** Ends when the transaction does that was left open for a turn. */
  #open: Promise<void> | undefined
  /** How long the last transaction kept others from writing. */
  #heldMs = 0
  /** When we first wrote in this turn of the event loop. */
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

  /** At once, or when the transaction has ended that was left open for a turn. */
  between<Result>(work: () => Result): Result | Promise<Result> {
    return this.#open === undefined ? work() : this.#open.then(() => this.between(work))
  }

  async breathe(): Promise<void> {
    if (this.#turnIsOver()) await this.#nextTurn()
  }

  async #flush(): Promise<void> {
    // Writes of the same turn share a transaction.
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

  /** One transaction for the writes at the head of the queue, mostly within one turn. */
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

  /** The writes leave the queue when they are on disk. */
  *#writeGroup(group: readonly Pending[]): Steps<void> {
    const { announce, clock, path } = this.#options
    const wakes = new Set<Hint>()
    const done: Done[] = []
    this.#db.begin()
    const begunAt = clock.monotonic()
    this.#noteTurn()
    try {
      for (const { work } of group) {
        done.push(group.length > 1 ? yield* this.#apart(work, wakes) : { result: yield* this.#perform(work, wakes) })
        if (this.#turnIsOver()) break
      }
      this.#db.run('commit')
    } catch (error) {
      this.#rollBack()
      if (group.length > 1 || isBusy(error)) throw error
      // Alone: what it threw is its own answer.
      this.#queue.shift()?.reject(fileError(error, path))
      return
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

  *#perform(work: Work<unknown>, wakes: Set<Hint>): Steps<unknown> {
    const tx = newTx(this.#db, this.#file.now(), wakes)
    const steps = work(tx)
    let step = steps.next()
    for (; !step.done; step = steps.next()) if (this.#turnIsOver()) yield
    tx.counters.flush()
    return step.value
  }

  *#apart(work: Work<unknown>, wakes: Set<Hint>): Steps<Done> {
    this.#db.run('savepoint belfry')
    try {
      const result = yield* this.#perform(work, wakes)
      this.#db.run('release belfry')
      return { result }
    } catch (error) {
      if (isBusy(error) || this.#db.driver.inTransaction === false) throw error
      this.#db.run('rollback to belfry')
      this.#db.run('release belfry')
      return { error }
    }
  }

  /** Some errors have already rolled back. */
  #rollBack(): void {
    this.#options.onRollback()
    try {
      this.#db.run('rollback')
    } catch {
      // There was nothing left to roll back.
    }
  }

  /** Operations that follow each other without a pause, each a promise after the other, are all one turn. */
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
