import { checkOptions } from '../core/checks/known-options.js'
import { DEFAULTS } from '../core/defaults.js'
import { failure, quote } from '../core/errors.js'
import { guarded, type Logger, stderrLogger } from '../core/logger.js'
import type { Authorise } from './security/caller.js'

export interface ServerOptions {
  /** The path under which the handler is mounted, such as `/belfry`. Default: the root. */
  readonly basePath?: string
  /** Authenticates requests. Default: every caller is admin, and only requests to a loopback host are answered. */
  readonly authorise?: Authorise
  /** Allowed Host header values besides loopback, such as `belfry.example.com` or `example.com:8080`. */
  readonly hosts?: readonly string[]
  readonly limits?: LimitOptions
  readonly logger?: Logger
  /** Whether changes go to the audit trail (`/v1/audit`). Default true. */
  readonly audit?: boolean
}

export interface LimitOptions {
  /** Largest body in bytes; imports are streams without a limit. Default 1 MiB. */
  readonly bodyBytes?: number
  /** Milliseconds that a body may take to arrive; for an import, the longest pause within the body. Default 30,000. */
  readonly bodyMs?: number
  /** The maximum of schedules in one `:apply`, and of runs in one `:cancel` or `:retry`. Default 1,000. */
  readonly batch?: number
  /** Milliseconds of CPU that one caller's requests may take per second. Default 500, with bursts of five times that. */
  readonly cpuMsPerSecond?: number
  /** Requests per second of one caller, by the name that `authorise` returns. Default 2,000, with bursts of five times that. */
  readonly requestsPerSecond?: number
}

export type ParsedServerOptions = ReturnType<typeof parseServerOptions>

const KNOWN = ['basePath', 'authorise', 'hosts', 'limits', 'logger', 'audit']
const BASE_PATH = /^(?:\/[A-Za-z0-9._~-]+)*$/

export function parseServerOptions(options: ServerOptions) {
  checkOptions(options, KNOWN, 'createServer')
  const { basePath = '', authorise, hosts = [], limits = {}, logger = stderrLogger, audit = true } = options
  checkOptions(limits, ['bodyBytes', 'bodyMs', 'batch', 'cpuMsPerSecond', 'requestsPerSecond'], 'createServer: limits')
  const base = basePath === '/' ? '' : basePath
  if (typeof base !== 'string' || !BASE_PATH.test(base)) {
    throw invalid(`basePath is ${quote(basePath)}; write it as "/belfry"`)
  }
  if (authorise !== undefined && typeof authorise !== 'function') throw invalid('authorise must be a function')
  if (!Array.isArray(hosts) || hosts.some((host) => typeof host !== 'string')) {
    throw invalid('hosts must be a list of host names')
  }
  return {
    basePath: base,
    hosts,
    audit,
    log: guarded(logger),
    limits: {
      bodyBytes: wholeNumber(limits.bodyBytes ?? DEFAULTS.server.bodyBytes, 'limits.bodyBytes'),
      bodyMs: wholeNumber(limits.bodyMs ?? DEFAULTS.server.bodyMs, 'limits.bodyMs'),
      batch: wholeNumber(limits.batch ?? DEFAULTS.server.batch, 'limits.batch'),
      cpuMsPerSecond: wholeNumber(limits.cpuMsPerSecond ?? DEFAULTS.server.cpuMsPerSecond, 'limits.cpuMsPerSecond'),
      requestsPerSecond: wholeNumber(
        limits.requestsPerSecond ?? DEFAULTS.server.requestsPerSecond,
        'limits.requestsPerSecond',
      ),
    },
    ...(authorise === undefined ? {} : { authorise }),
  }
}

function wholeNumber(value: number, option: string): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw invalid(`${option} is ${quote(value)}; it must be a whole number of at least 1`)
}

function invalid(detail: string) {
  return failure('OPTION_INVALID', `createServer: ${detail}`)
}
