/**
 * Threads for CPU-bound handlers. The dispatcher claims at most as many runs as there may be threads, so each run gets
 * an idle or a new thread at once. Threads that have been idle for `idleMs` are ended.
 *
 * What it survives:
 * - A thread dies while it runs a handler: that attempt fails with the reason, and the next attempt gets another
 *   thread.
 * - An idle thread dies of work that an earlier handler left behind: a run that was sent to it and has not begun goes
 *   to another thread.
 * - A handler does not return within its abort window: its thread is ended, and with it the handler.
 */
import { type Alarm, type Clock, setAlarm, sleep } from '../../core/clock.js'
import { errorRecord, failure } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import type { ThreadedJob } from '../definitions.js'
import { ABORT_REASONS, type Attempt } from '../runs/attempt.js'
import type { LogMessage, RunMessage } from './messages.js'
import { unpackError } from './packed-error.js'
import { NOT_BEGUN, Thread } from './thread.js'

export interface ThreadPoolOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly idleMs: number
  readonly memoryMb: number | undefined
}

export interface ThreadWork {
  readonly attempt: Attempt
  readonly job: string
  readonly module: URL
  readonly payload: unknown
  /** Gets the handler's log lines. */
  readonly log: Logger
}

/** How long to wait for a thread to end. Only native code that does not return takes that long. */
const END_MS = 1_000
/** How long a module may take to load at the start. */
const LOAD_MS = 30_000

export class ThreadPool {
  readonly #options: ThreadPoolOptions
  readonly #idle = new Map<Thread, Alarm>()
  readonly #busy = new Map<Attempt, Thread>()
  readonly #all = new Set<Thread>()
  #isClosed = false

  constructor(options: ThreadPoolOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#all.size
  }

  /** Loads the modules of these jobs, so that a module that cannot run fails the start, not the first run. */
  async check(jobs: Iterable<Pick<ThreadedJob, 'name' | 'run'>>): Promise<void> {
    const thread = this.#take().thread
    try {
      for (const { name, run } of jobs) await this.#load(thread, name, run)
    } catch (error) {
      // A thread caches a failed import, and would fail again with the repaired module.
      await this.#end(thread)
      throw error
    }
    this.#rest(thread)
  }

  /** Runs the handler in a thread. Throws the handler's error, or the reason of the thread's death. */
  async run(work: ThreadWork): Promise<unknown> {
    for (;;) {
      const { attempt } = work
      // The attempt may be aborted before a thread has it, or between two threads.
      attempt.signal.throwIfAborted()
      const { thread, isNew } = this.#take()
      this.#busy.set(attempt, thread)
      const result = await this.#runIn(thread, work).finally(() => {
        this.#busy.delete(attempt)
        this.#rest(thread)
      })
      if (result !== NOT_BEGUN) return result
      if (isNew) throw failure('THREAD_ENDED', `the thread of job "${work.job}" has ended before its handler began`)
    }
  }

  /** Ends the thread of this attempt, if any. False if the handler may still run. */
  async end(attempt: Attempt): Promise<boolean> {
    const thread = this.#busy.get(attempt)
    return thread === undefined || this.#end(thread)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#all].map((thread) => this.#end(thread)))
  }

  #take(): { readonly thread: Thread; readonly isNew: boolean } {
    // Takes the most recently used thread, so that the others become idle for long enough to be ended.
    const last = [...this.#idle].at(-1)
    if (last !== undefined) {
      const [thread, alarm] = last
      alarm.close()
      this.#idle.delete(thread)
      return { thread, isNew: false }
    }
    const { memoryMb } = this.#options
    const thread = new Thread({ memoryMb, onEnd: (ended, error) => this.#ended(ended, error) })
    this.#all.add(thread)
    return { thread, isNew: true }
  }

  #rest(thread: Thread): void {
    if (!this.#all.has(thread)) return
    if (this.#isClosed) {
      void this.#end(thread)
      return
    }
    const alarm = setAlarm(this.#options.clock, this.#options.idleMs, () => void this.#end(thread))
    alarm.unref()
    this.#idle.set(thread, alarm)
  }

  /** False if native code keeps the thread for longer than `END_MS`. */
  async #end(thread: Thread): Promise<boolean> {
    this.#forget(thread)
    const waited = new AbortController()
    const ended = thread.terminate().then(() => true)
    const isEnded = await Promise.race([ended, sleep(this.#options.clock, END_MS, waited.signal).then(() => false)])
    waited.abort()
    return isEnded
  }

  #ended(thread: Thread, error: unknown): void {
    this.#forget(thread)
    if (error === undefined) return
    this.#options.log.warn(
      { err: errorRecord(error) },
      'a thread was ended by an error after its handler had returned: a handler leaves work behind; let it wait for all it starts',
    )
  }

  #forget(thread: Thread): void {
    this.#idle.get(thread)?.close()
    this.#idle.delete(thread)
    this.#all.delete(thread)
  }

  async #runIn(thread: Thread, { attempt, job, module, payload, log }: ThreadWork): Promise<unknown> {
    const aborted = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
    const onAbort = () => {
      Atomics.store(new Int32Array(aborted), 0, ABORT_REASONS.indexOf(attempt.reason ?? 'lost') + 1)
      thread.notify()
    }
    const { signal, run } = attempt
    signal.addEventListener('abort', onAbort)
    const message: RunMessage = { kind: 'run', module: module.href, job, run: { ...run }, payload, aborted }
    try {
      return await thread.do(message, (line) => write(log, line))
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async #load(thread: Thread, job: string, module: URL): Promise<void> {
    const { clock } = this.#options
    const waited = new AbortController()
    const late = sleep(clock, LOAD_MS, waited.signal).then(() => {
      if (!waited.signal.aborted) throw new Error(`it has not finished loading after ${LOAD_MS / 1_000} s`)
    })
    try {
      await Promise.race([thread.do({ kind: 'load', module: module.href }, () => {}), late])
    } catch (error) {
      throw failure('HANDLER_INVALID', `job "${job}": run: ${errorRecord(error).message}`, { cause: error })
    } finally {
      waited.abort()
    }
  }
}

function write(log: Logger, { level, fields, message }: LogMessage): void {
  const unpacked = Object.entries(fields).map(([name, value]) => [name, unpackError(value)] as const)
  log[level](Object.fromEntries(unpacked), message)
}
