import type { Worker } from 'node:worker_threads'
import { errorRecord, failure } from '../../core/errors.js'
import { startThread } from '../../core/instances/start-thread.js'
import type { FromThread, LogMessage, ToThread } from './messages.js'
import { unpackError } from './packed-error.js'

/** The thread died before the handler began: another thread can run it. */
export const NOT_BEGUN = Symbol('not begun')

interface Task {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  readonly onLog: (line: LogMessage) => void
  readonly isRun: boolean
  hasBegun: boolean
}

export interface ThreadOptions {
  /** Megabytes of heap; the runtime's own default when absent. */
  readonly memoryMb: number | undefined
  /** Called when the thread has ended. `error` is the reason, or undefined if the thread's task was rejected with it. */
  readonly onEnd: (thread: Thread, error: unknown) => void
}

/** One thread. It runs one task at a time, and keeps the process alive only while it does. */
export class Thread {
  readonly #worker: Worker
  readonly #options: ThreadOptions
  readonly #exited: Promise<void>
  #task: Task | undefined
  /** The runtime's reason for the thread's death. */
  #error: unknown

  constructor(options: ThreadOptions) {
    this.#options = options
    const { memoryMb } = options
    this.#worker = startThread(new URL('./handler-thread.js', import.meta.url), {
      name: 'belfry handler',
      ...(memoryMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: memoryMb } }),
    })
    this.#worker.unref()
    this.#worker.on('message', (message: FromThread) => this.#hear(message))
    this.#worker.on('messageerror', (error) => this.#finish((task) => task.reject(error)))
    this.#worker.on('error', (error) => {
      this.#error = error
    })
    this.#exited = new Promise((resolve) => {
      this.#worker.on('exit', (code) => {
        resolve()
        this.#end(code)
      })
    })
  }

  /**
   * Runs a task in the thread and resolves with its result, or with `NOT_BEGUN` if the thread died before the task began.
   */
  async do(message: ToThread, onLog: (line: LogMessage) => void): Promise<unknown> {
    this.#worker.ref()
    return new Promise((resolve, reject) => {
      this.#task = { resolve, reject, onLog, isRun: message.kind === 'run', hasBegun: false }
      try {
        this.#worker.postMessage(message)
      } catch (error) {
        this.#finish((task) => task.reject(message.kind === 'run' ? unsendable(message.job, error) : error))
      }
    })
  }

  /** Makes the thread check for an abort. A handler that computes without a pause does not read this message. */
  notify(): void {
    this.#worker.postMessage({ kind: 'abort' } satisfies ToThread)
  }

  /** Ends the thread and its handler. Resolves when neither runs any more. */
  async terminate(): Promise<void> {
    await this.#worker.terminate()
    await this.#exited
  }

  #hear(message: FromThread): void {
    if (message.kind === 'log') this.#task?.onLog(message)
    else if (message.kind === 'began') {
      if (this.#task !== undefined) this.#task.hasBegun = true
    } else if (message.kind === 'threw') this.#finish((task) => task.reject(unpackError(message.error)))
    else this.#finish((task) => task.resolve(message.kind === 'returned' ? message.result : undefined))
  }

  #finish(settle: (task: Task) => void): void {
    const task = this.#task
    this.#task = undefined
    this.#worker.unref()
    if (task !== undefined) settle(task)
  }

  #end(code: number): void {
    const error = this.#error
    const task = this.#task
    // A handler that had not begun is not the reason for the thread's death.
    const isOfTask = task !== undefined && (!task.isRun || task.hasBegun)
    this.#finish(({ resolve, reject }) => (isOfTask ? reject(endOf(code, error)) : resolve(NOT_BEGUN)))
    this.#options.onEnd(this, isOfTask ? undefined : error)
  }
}

function unsendable(job: string, cause: unknown) {
  const problem = failure(
    'PAYLOAD_INVALID',
    `payload of job "${job}": what its schema makes of it cannot be sent to a thread (${errorRecord(cause).message}); let the schema return data without functions`,
    { cause },
  )
  return Object.assign(problem, { retryable: false })
}

function endOf(code: number, error: unknown) {
  if (error === undefined) {
    return failure(
      'THREAD_ENDED',
      `the thread of the handler has ended with exit code ${code}: something in it calls process.exit(); return or throw instead`,
    )
  }
  const { code: reason, message, stack } = errorRecord(error)
  const why =
    reason === 'ERR_WORKER_OUT_OF_MEMORY'
      ? 'the thread of the handler ran out of memory: let it need less, or raise threads.memoryMb'
      : `the thread of the handler was ended by an error that nothing caught: ${message}`
  const ended = failure('THREAD_ENDED', why, { cause: error })
  return stack === undefined ? ended : Object.assign(ended, { stack })
}
