import { problem } from './problem.js'
import type { ServerContext } from './route.js'

/** Waits for something, until whoever asked is gone or the service closes: a server on its way out keeps nobody waiting. */
export async function whileAsked<Result>(
  c: ServerContext,
  wait: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const leave = c.env.crowds.waits.enter(c.get('caller').name)
  const over = new AbortController()
  const end = () => over.abort()
  const signals = [c.req.raw.signal, c.env.closing]
  for (const signal of signals) {
    if (signal.aborted) end()
    signal.addEventListener('abort', end)
  }
  try {
    return await wait(over.signal)
  } finally {
    leave()
    for (const signal of signals) signal.removeEventListener('abort', end)
  }
}

export function stopping() {
  return problem(503, 'STOPPING', 'the service stops: ask again, another process will answer', {
    headers: { 'retry-after': '1' },
  })
}
