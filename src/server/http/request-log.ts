/** One log line per request: caller, method, path and status. Queries and bodies are never logged. */
import type { Clock } from '../../core/clock.js'
import { isSilent, type Logger } from '../../core/logger.js'
import type { Caller } from '../security/caller.js'
import { redactedText } from '../security/redacted.js'
import type { ServerContext } from './route.js'

/** Monitoring requests these paths every few seconds, so they are logged at debug level. */
const PROBES = /\/(healthz|readyz|metrics)$/
const MAX_PATH = 500

interface Handled {
  readonly status: number
  readonly startedAt: number
  readonly requestId: string
}

export function logRequest(
  log: Logger,
  clock: Clock,
  c: ServerContext,
  { status, startedAt, requestId }: Handled,
): void {
  const level = status >= 500 ? 'warn' : PROBES.test(c.req.path) ? 'debug' : 'info'
  if (isSilent(log, level)) return
  const { info } = c.env
  const caller: Caller | undefined = c.get('caller')
  const fields = {
    method: c.req.method.slice(0, 20),
    // The path without its query, whose filters may hold users' data.
    path: redactedText(new URL(c.req.url).pathname.slice(0, MAX_PATH)),
    status,
    ms: Math.round((clock.monotonic() - startedAt) * 10) / 10,
    requestId: redactedText(requestId),
    ...(caller === undefined ? {} : { caller: caller.name }),
    ...(info.remoteAddress === undefined ? {} : { address: info.remoteAddress }),
  }
  log[level](fields, 'request')
}
