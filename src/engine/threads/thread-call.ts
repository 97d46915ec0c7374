import { failure } from '../../core/errors.js'
import { type Logger, withFields } from '../../core/logger.js'
import { type Message, messageOf } from '../../core/runs/event.js'
import type { ClaimedRun } from '../../core/store.js'
import type { HandlerContext } from '../definitions.js'
import { ABORT_REASONS, abortError } from '../runs/attempt.js'
import type { LogMessage, RunMessage } from './messages.js'
import { packError } from './packed-error.js'

/** The context of a handler in a thread. */
export class ThreadCall implements HandlerContext<unknown> {
  readonly payload: unknown
  readonly run: ClaimedRun
  readonly token: number
  readonly signal: AbortSignal
  readonly log: Logger
  readonly #aborted: Int32Array
  readonly #controller = new AbortController()

  constructor({ payload, run, aborted }: RunMessage, send: (line: LogMessage) => void) {
    this.payload = payload
    this.run = run
    this.token = run.token
    this.log = logTo(send)
    this.#aborted = new Int32Array(aborted)
    this.signal = checkedSignal(this.#controller.signal, () => this.noticeAbort())
    this.noticeAbort()
  }

  get tick(): Date {
    return new Date(this.run.tick ?? this.run.createdAt)
  }

  get event(): Message {
    return messageOf(this.run)
  }

  get transaction(): HandlerContext<unknown>['transaction'] {
    return async () => {
      throw failure(
        'UNSUPPORTED',
        'transaction() works in handlers of the main thread alone: a thread has no connection of the store; return the result, or give the job a function as run',
      )
    }
  }

  /** Fires the signal if the main thread has aborted the attempt. */
  noticeAbort(): void {
    const reason = ABORT_REASONS[Atomics.load(this.#aborted, 0) - 1]
    const { signal } = this.#controller
    if (reason !== undefined && !isAborted(signal)) this.#controller.abort(abortError(reason, this.run))
  }
}

const aborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted')?.get as (this: AbortSignal) => boolean

function isAborted(signal: AbortSignal): boolean {
  return aborted.call(signal)
}

/** A signal that checks for an abort whenever `aborted` is read, for handlers that never await. */
function checkedSignal(signal: AbortSignal, check: () => void): AbortSignal {
  const isAbortedNow = () => {
    check()
    return isAborted(signal)
  }
  return Object.defineProperties(signal, {
    aborted: { get: isAbortedNow },
    throwIfAborted: {
      value: () => {
        if (isAbortedNow()) throw signal.reason
      },
    },
  })
}

function logTo(send: (line: LogMessage) => void): Logger {
  const line = (level: LogMessage['level']) => (fields: object, message: string) => {
    // Pino-shaped loggers also take a message alone.
    const [own, text] = typeof fields === 'string' ? [{}, fields] : [fields, message]
    const packed = Object.entries(own).map(([name, value]) => [name, packError(value)] as const)
    send({ kind: 'log', level, fields: Object.fromEntries(packed), message: String(text) })
  }
  const log: Logger = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
  return { ...log, child: (fields) => withFields(log, fields) }
}
