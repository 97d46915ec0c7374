import { problem } from './problem.js'
import type { ServerContext } from './route.js'

/**
 * Calls `wait` with a signal that aborts when the client disconnects or the service closes. Meanwhile the request counts as
 * one of the caller's waiting requests.
 */
export async function whileConnected<Result>(
  c: ServerContext,
  wait: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const leave = c.env.concurrency.waits.enter(c.get('caller').name)
  const ended = new AbortController()
  const end = () => ended.abort()
  const signals = [c.req.raw.signal, c.env.closing]
  for (const signal of signals) {
    if (signal.aborted) end()
    signal.addEventListener('abort', end)
  }
  try {
    return await wait(ended.signal)
  } finally {
    leave()
    for (const signal of signals) signal.removeEventListener('abort', end)
  }
}

export function stopping() {
  return problem(503, 'STOPPING', 'the service is stopping: send the request again, another process will answer', {
    headers: { 'retry-after': '1' },
  })
}
