/** One line for each request, pino-shaped: who asked for what, and what came of it. Never what was in it. */
import type { Clock } from '../core/clock.js'
import type { Logger } from '../core/logger.js'
import type { Caller, RequestInfo } from './caller.js'
import { redactedText } from './redacted.js'

export interface LoggedRequest {
  readonly request: Request
  readonly info: RequestInfo
  readonly caller: Caller | undefined
  readonly status: number
  readonly startedAt: number
}

/** Paths that are asked for every few seconds by machines. */
const PROBES = /\/(healthz|readyz|metrics)$/
const MAX_PATH = 500

export function logRequest(log: Logger, clock: Clock, logged: LoggedRequest): void {
  const { request, info, caller, status, startedAt } = logged
  const path = new URL(request.url).pathname
  const fields = {
    method: request.method.slice(0, 20),
    // Without the query: filters may hold keys of users.
    path: redactedText(path.slice(0, MAX_PATH)),
    status,
    ms: Math.round((clock.monotonic() - startedAt) * 10) / 10,
    ...(caller === undefined ? {} : { caller: caller.name }),
    ...(info.remoteAddress === undefined ? {} : { address: info.remoteAddress }),
  }
  if (status >= 500) log.warn(fields, 'request')
  else if (PROBES.test(path)) log.debug(fields, 'request')
  else log.info(fields, 'request')
}
