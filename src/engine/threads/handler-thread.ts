/**
 * The entry of a thread: loads handler modules and runs one handler at a time.
 *
 * An abort arrives in two ways. A message fires the signal of a handler that awaits something. A handler that computes
 * without a pause reads no messages, so `signal.aborted` reads a number in shared memory instead.
 */
import { parentPort } from 'node:worker_threads'
import { toJson } from '../../core/checks/json.js'
import { failure } from '../../core/errors.js'
import { handlerOf } from './handler-module.js'
import type { FromThread, RunMessage, ToThread } from './messages.js'
import { packError } from './packed-error.js'
import { ThreadCall } from './thread-call.js'

/** The current call, until its handler returns. */
let current: ThreadCall | undefined

function say(message: FromThread): void {
  parentPort?.postMessage(message)
}

parentPort?.on('message', (message: ToThread) => {
  if (message.kind === 'abort') current?.noticeAbort()
  else void answer(message.kind === 'run' ? run(message) : load(message.module))
})

async function answer(work: Promise<FromThread>): Promise<void> {
  say(await work.catch((error: unknown) => ({ kind: 'threw' as const, error: packError(error) })))
}

async function load(module: string): Promise<FromThread> {
  await handlerOf(module)
  return { kind: 'loaded' }
}

async function run(message: RunMessage): Promise<FromThread> {
  say({ kind: 'began' })
  const handler = await handlerOf(message.module)
  const call = new ThreadCall(message, (line) => say(line))
  current = call
  try {
    return { kind: 'returned', result: resultOf(message.job, await handler(call)) }
  } finally {
    current = undefined
  }
}

/** Converts the result to JSON in this thread, because other values may not be sendable to the main thread. */
function resultOf(job: string, value: unknown): unknown {
  try {
    return toJson(value, `the result of job "${job}"`)
  } catch (error) {
    throw Object.assign(error instanceof Error ? error : failure('PAYLOAD_INVALID', String(error)), {
      retryable: false,
    })
  }
}
