/**
 * Operations: work of a request that may take longer than a request should. It goes on in the process that got the request,
 * and its progress is a record in the store, which every process can answer with:
 *
 *     POST …/backfill ──▶ running ──┬──▶ succeeded, failed
 *                          │        └──▶ cancelled (POST …/cancel, the token was revoked)
 *                          └ no news for 30 s: interrupted, the process has ended
 *
 * Each kind of work is safe to repeat, so an interrupted operation is started again by the same request.
 */
import { randomUUID } from 'node:crypto'
import type { Belfry } from '../../belfry.js'
import { systemClock } from '../../core/clock.js'
import { errorRecord } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import { toProblem } from '../http/problem.js'
import type { ServerContext } from '../http/route.js'
import { whileAuthorised } from '../security/guard.js'
import { fromRecord, type OperationKind, type StoredOperation, toBody } from './stored-operation.js'

const KIND = 'operation'
const CANCEL_KIND = 'operation-cancel'
const KEPT_MS = 7 * 24 * 3_600_000
const PROGRESS_MS = 1_000

/** What the work gets: a signal that ends it, and a way to count what it has done. */
export interface Step {
  readonly signal: AbortSignal
  add(counts: Readonly<Record<string, number>>): void
}

export interface Started {
  readonly operation: StoredOperation
  /** Resolves with the final state. */
  readonly ended: Promise<StoredOperation>
}

export class Operations {
  readonly #belfry: Belfry
  readonly #log: Logger
  readonly #running = new Map<string, AbortController>()
  readonly #ends = new Set<Promise<unknown>>()

  constructor(belfry: Belfry, log: Logger) {
    this.#belfry = belfry
    this.#log = log
  }

  /** Begins the work. `audit` is called once at its end. */
  async start(
    c: ServerContext,
    about: { readonly kind: OperationKind; readonly target: string },
    work: (step: Step) => Promise<void>,
    audit: (operation: StoredOperation) => Promise<void>,
  ): Promise<Started> {
    const caller = c.get('caller')
    const leave = c.env.concurrency.operations.enter(caller.name)
    const startedAt = (
      await this.#belfry.now().catch((error: unknown) => {
        leave()
        throw error
      })
    ).getTime()
    const first: StoredOperation = {
      ...{ ...about, id: randomUUID(), state: 'running', counts: {}, startedAt, updatedAt: startedAt },
      ...(caller.prefix === undefined ? {} : { prefix: caller.prefix }),
    }
    await this.#write(first).catch((error: unknown) => {
      leave()
      throw error
    })
    const ended = this.#run(c, first, work)
      .then(async (last) => {
        await audit(last)
        return last
      })
      .finally(leave)
    // The request may not wait for the end, and the record says how the operation ended.
    const end = ended.catch(() => {}).finally(() => this.#ends.delete(end))
    this.#ends.add(end)
    return { operation: first, ended }
  }

  /** Resolves when the operations of this process have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#ends)
  }

  async get(id: string): Promise<StoredOperation | undefined> {
    if (!/^[0-9a-f-]{36}$/.test(id)) return undefined
    const record = await this.#belfry.records.get(KIND, id)
    return record === undefined ? undefined : fromRecord(record, (await this.#belfry.now()).getTime())
  }

  /** Ends the operation in whichever process runs it, within about a second. */
  async cancel(id: string): Promise<void> {
    await this.#belfry.records.put({ kind: CANCEL_KIND, id, body: true, ttlMs: KEPT_MS })
    this.#running.get(id)?.abort()
  }

  async #run(c: ServerContext, first: StoredOperation, work: (step: Step) => Promise<void>): Promise<StoredOperation> {
    const stop = new AbortController()
    const end = () => stop.abort()
    const counts: Record<string, number> = {}
    this.#running.set(first.id, stop)
    c.env.closing.addEventListener('abort', end)
    const unwatch = whileAuthorised(c, end)
    const watch = this.#watch(first, counts, end)
    let last: StoredOperation
    try {
      await work({ signal: stop.signal, add: (more) => addTo(counts, more) })
      last = { ...first, counts, state: 'succeeded' }
    } catch (error) {
      last = { ...first, counts, ...this.#failure(c, error, stop.signal) }
    } finally {
      unwatch()
      c.env.closing.removeEventListener('abort', end)
      this.#running.delete(first.id)
      await watch()
    }
    await this.#write(last)
    return last
  }

  #failure(c: ServerContext, error: unknown, signal: AbortSignal): Pick<StoredOperation, 'state' | 'error'> {
    if (signal.aborted) return { state: c.env.closing.aborted ? 'interrupted' : 'cancelled' }
    const { code, message } = toProblem(error)
    if (code === 'INTERNAL') this.#log.error({ err: errorRecord(error) }, 'an operation failed')
    return { state: 'failed', error: { code, message } }
  }

  /** Writes the progress every second, and ends the work when another process has cancelled it. */
  #watch(first: StoredOperation, counts: Readonly<Record<string, number>>, end: () => void): () => Promise<void> {
    let isOver = false
    let written = Promise.resolve()
    const tell = async () => {
      await this.#write({ ...first, counts: { ...counts } })
      if ((await this.#belfry.records.get(CANCEL_KIND, first.id)) !== undefined) end()
    }
    const again = () => {
      written = tell()
        .catch(() => {})
        .then(() => {
          if (!isOver) stop = systemClock.after(PROGRESS_MS, again)
        })
    }
    let stop = systemClock.after(PROGRESS_MS, again)
    return async () => {
      isOver = true
      stop()
      await written
    }
  }

  async #write(operation: StoredOperation): Promise<void> {
    await this.#belfry.records.put({ kind: KIND, id: operation.id, body: toBody(operation), ttlMs: KEPT_MS })
  }
}

function addTo(counts: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(more)) counts[name] = (counts[name] ?? 0) + count
}
