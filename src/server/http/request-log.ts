/** One line for each request, pino-shaped: who asked for what, and what came of it. Never what was in it. */
import type { Clock } from '../../core/clock.js'
import { isSilent, type Logger } from '../../core/logger.js'
import type { Caller } from '../security/caller.js'
import { redactedText } from '../security/redacted.js'
import type { ServerContext } from './route.js'

/** Paths that are asked for every few seconds by machines. */
const PROBES = /\/(healthz|readyz|metrics)$/
const MAX_PATH = 500

export function logRequest(log: Logger, clock: Clock, c: ServerContext, status: number, startedAt: number): void {
  const level = status >= 500 ? 'warn' : PROBES.test(c.req.path) ? 'debug' : 'info'
  if (isSilent(log, level)) return
  const { info } = c.env
  const caller: Caller | undefined = c.get('caller')
  const fields = {
    method: c.req.method.slice(0, 20),
    // Without the query: filters may hold keys of users.
    path: redactedText(pathOf(c.req.url).slice(0, MAX_PATH)),
    status,
    ms: Math.round((clock.monotonic() - startedAt) * 10) / 10,
    ...(caller === undefined ? {} : { caller: caller.name }),
    ...(info.remoteAddress === undefined ? {} : { address: info.remoteAddress }),
  }
  log[level](fields, 'request')
}

/** Of the URL of a request, which is well-formed and absolute. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const length = url.slice(start).search(/[?#]/)
  return length === -1 ? url.slice(start) : url.slice(start, start + length)
}
