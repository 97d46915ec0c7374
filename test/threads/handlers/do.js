// @ts-check
/** A handler that performs the action named in its payload. */
import { once } from 'node:events'
import { isMainThread, threadId } from 'node:worker_threads'

/** @typedef {import('../../../src/index.js').ThreadContext<any>} Context */

/** @type {Readonly<Record<string, (context: Context) => unknown>>} */
const ACTIONS = {
  tell: ({ payload, tick, run, event, token, signal }) => ({
    ...{ isMainThread, thread: threadId, payload, tick, token, event, aborted: signal.aborted },
    run: { id: run.id, origin: run.origin, attempt: run.attempt },
  }),
  heap: () => ({ heap: process.memoryUsage().heapUsed }),
  'spin until told': ({ payload }) => {
    const told = new Int32Array(payload.told)
    while (Atomics.load(told, 0) === 0);
    return 'told'
  },
  'spin for ever': () => {
    for (;;);
  },
  'spin until aborted': ({ signal }) => {
    while (!signal.aborted);
    return threadId
  },
  'wait until aborted': async ({ signal }) => {
    if (!signal.aborted) await once(signal, 'abort')
    throw signal.reason
  },
  wait: async ({ payload }) => {
    await new Promise((resolve) => setTimeout(resolve, payload.ms))
    return 'waited'
  },
  exit: () => process.exit(3),
  'throw later': async () => {
    setTimeout(() => {
      throw new Error('nobody catches this')
    })
    await new Promise(() => {})
  },
  'leave a bomb': () => {
    setTimeout(() => {
      throw new Error('left behind')
    })
  },
  'use much memory': () => {
    const kept = []
    for (;;) kept.push(Array.from({ length: 1_000 }, (_, at) => ({ at })))
  },
  throw: () => {
    const cause = new Error('the disk is full')
    throw Object.assign(new TypeError('cannot resize', { cause }), { code: 'E_RESIZE', status: 507, undo: () => {} })
  },
  'throw for good': () => {
    throw Object.assign(new Error('never'), { retryable: false })
  },
  'throw text': () => {
    throw 'only text'
  },
  'return what is no JSON': () => ({ when: () => {} }),
  log: ({ log }) => {
    log.info({ size: 3 }, 'resized')
    log.warn({ err: Object.assign(new Error('odd'), { code: 'E_ODD' }), how: () => {} }, 'resized oddly')
    log.child?.({ part: 'exif' }).error({ kept: false }, 'lost')
  },
  transaction: (context) => /** @type {any} */ (context).transaction(() => {}),
}

/** @param {Context} context */
export default async function performAction(context) {
  return ACTIONS[context.payload.do]?.(context)
}
