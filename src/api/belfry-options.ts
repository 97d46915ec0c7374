import { availableParallelism } from 'node:os'
import { checkOptions } from '../core/checks/known-options.js'
import { type Clock, systemClock } from '../core/clock.js'
import { DEFAULTS } from '../core/defaults.js'
import { failure, quote } from '../core/errors.js'
import { ENGINE_ROLES, type EngineRole } from '../core/instances/instance.js'
import { guarded, type Logger, stderrLogger } from '../core/logger.js'
import { checkName } from '../core/names/names.js'
import type { Sink } from '../core/sink.js'
import type { Store } from '../core/store.js'
import { checkHeartbeat } from '../engine/instances/keeper.js'
import { type Duration, durationMs } from '../time/duration.js'
import { located } from './located.js'
import { STOP_SIGNALS, type StopSignal } from './process-signals.js'
import { parseSinks } from './sinks/sink-options.js'

export interface BelfryOptions {
  readonly store: Store
  /** The app whose code declares schedules. With it, schedules that the code no longer declares are removed. */
  readonly app?: string
  /**
   * Orders deploys: the schedules of the newest live release are in force. Text, in which numbers are compared by
   * value: `2026-9` is older than `2026-10`.
   */
  readonly release?: string
  /** `tick` records ticks, `run` starts runs. Default both; an instance without roles only enqueues and reads. */
  readonly roles?: readonly EngineRole[]
  /** Of the defined jobs, run only these. */
  readonly jobs?: readonly string[]
  /**
   * The sinks by name; a schedule with `to` delivers to the sink of that name. When given, a schedule for a sink that
   * no live instance has is refused.
   */
  readonly sinks?: Readonly<Record<string, Sink>>
  /** Attempts that this instance runs at a time. Default 10. */
  readonly concurrency?: number
  /** Worker threads for jobs whose `run` is the URL of a module. */
  readonly threads?: ThreadOptions
  /** How long an instance may send no heartbeat before its work is taken over. Default 15 s. */
  readonly lease?: Duration
  /** How often an instance proves that it lives. Default a quarter of the lease; more than a third is refused. */
  readonly heartbeat?: Duration
  /**
   * How long the event loop may be blocked. Until then another thread keeps the instance and its locks alive; after it the
   * process counts as dead. Default 5 min.
   */
  readonly maxBlock?: Duration
  /** Poll for work at least this often, with or without hints. Default 1 s. */
  readonly poll?: Duration
  /** Record ticks this long ahead. Default 1 s. */
  readonly lookahead?: Duration
  /** Ticks at most this late do not count as missed. Default 10 s. */
  readonly grace?: Duration
  /** At most this many schedules, claims or settlements share one transaction. Default 1,000. */
  readonly batch?: number
  /** How much history is kept. Default 7 days and 1,000,000 runs. */
  readonly history?: { readonly maxAge?: Duration; readonly maxRuns?: number }
  /** How long running work may go on after `stop()`. Default 10 s. */
  readonly stopGrace?: Duration
  /** Signals on which the instance stops; afterwards they end the process as usual. Default none. */
  readonly signals?: boolean | readonly StopSignal[]
  /** Pino-shaped. Default: warnings and errors on standard error. */
  readonly logger?: Logger
  readonly clock?: Clock
}

export interface ThreadOptions {
  /** Attempts in threads at a time; they count as part of `concurrency`. Default as many as CPUs. */
  readonly max?: number
  /** How long an idle thread is kept. Default 30 s. */
  readonly idle?: Duration
  /** Heap of each thread, in megabytes. A handler that needs more fails. Default the runtime's own limit. */
  readonly memoryMb?: number
}

export type ParsedOptions = ReturnType<typeof parseOptions>

const INSTANCE = DEFAULTS.instance
const KNOWN = [
  ...['store', 'app', 'release', 'roles', 'jobs', 'sinks', 'concurrency', 'lease', 'heartbeat', 'poll', 'lookahead'],
  ...['maxBlock', 'grace', 'batch', 'history', 'stopGrace', 'signals', 'logger', 'clock', 'threads'],
]

export function parseOptions(options: BelfryOptions) {
  checkOptions(options, KNOWN, 'createBelfry')
  const { store, app, release, roles = ENGINE_ROLES, jobs, history = {} } = options
  const { concurrency = INSTANCE.concurrency, batch = INSTANCE.batch } = options
  if (typeof store?.open !== 'function')
    throw invalid('store is missing: pass memory(), sqlite(), postgres() or redis()')
  checkOptions(history, ['maxAge', 'maxRuns'], 'createBelfry: history')
  for (const [option, list] of Object.entries({ roles, jobs })) {
    if (list !== undefined && !Array.isArray(list)) throw invalid(`${option} must be a list of names`)
  }
  const stranger = roles.find((role) => !ENGINE_ROLES.includes(role))
  if (stranger !== undefined) throw invalid(`role "${stranger}" is unknown: allowed are ${ENGINE_ROLES.join(' and ')}`)
  const leaseMs = ms(options.lease, INSTANCE.leaseMs, 'lease', 100)
  const heartbeatMs = ms(options.heartbeat, leaseMs * INSTANCE.heartbeatShare, 'heartbeat', 1)
  checkHeartbeat(heartbeatMs, leaseMs, 'createBelfry')
  const pollMs = ms(options.poll, INSTANCE.pollMs, 'poll', 1)
  return {
    store,
    roles,
    jobs,
    pollMs,
    leaseMs,
    heartbeatMs,
    maxBlockMs: ms(options.maxBlock, INSTANCE.maxBlockMs, 'maxBlock', 1_000),
    clock: options.clock ?? systemClock,
    log: parseLogger(options.logger),
    sinks: parseSinks(options.sinks ?? {}),
    hasSinks: options.sinks !== undefined,
    concurrency: atLeast(1, concurrency, 'concurrency'),
    threads: parseThreads(options.threads ?? {}),
    batch: atLeast(1, batch, 'batch'),
    lookaheadMs: ms(options.lookahead, INSTANCE.lookaheadMs, 'lookahead', 0),
    graceMs: ms(options.grace, INSTANCE.graceMs, 'grace', 0),
    stopGraceMs: ms(options.stopGrace, INSTANCE.stopGraceMs, 'stopGrace', 0),
    history: {
      maxAgeMs: ms(history.maxAge, INSTANCE.history.maxAgeMs, 'history.maxAge', 0),
      maxRuns: atLeast(0, history.maxRuns ?? INSTANCE.history.maxRuns, 'history.maxRuns'),
    },
    signals: parseSignals(options.signals ?? false),
    ...(app === undefined ? {} : { app: checkName(app, 'app') }),
    ...(release === undefined ? {} : { release: checkName(release, 'release') }),
  }
}

function parseThreads(threads: ThreadOptions) {
  checkOptions(threads, ['max', 'idle', 'memoryMb'], 'createBelfry: threads')
  const { max = availableParallelism(), idle, memoryMb } = threads
  return {
    max: atLeast(1, max, 'threads.max'),
    idleMs: ms(idle, INSTANCE.threads.idleMs, 'threads.idle', 0),
    // With less memory a thread dies before it has loaded anything.
    memoryMb: memoryMb === undefined ? undefined : atLeast(16, memoryMb, 'threads.memoryMb'),
  }
}

function parseLogger(logger: Logger | undefined): Logger {
  if (logger === undefined) return stderrLogger
  const missing = (['debug', 'info', 'warn', 'error'] as const).find((level) => typeof logger[level] !== 'function')
  if (missing !== undefined) throw invalid(`logger has no ${missing}(): pass a pino-shaped logger`)
  return guarded(logger)
}

function parseSignals(signals: boolean | readonly StopSignal[]): readonly StopSignal[] {
  if (signals === true) return ['SIGTERM', 'SIGINT']
  if (signals === false) return []
  if (!Array.isArray(signals)) throw invalid('signals must be true, false or a list of signal names')
  const stranger = signals.find((signal) => !STOP_SIGNALS.includes(signal))
  if (stranger === undefined) return signals
  throw invalid(`signals names ${quote(stranger)}; allowed are ${STOP_SIGNALS.join(', ')}`)
}

function ms(value: Duration | undefined, byDefault: number, option: string, least: number): number {
  const parsed = located(`createBelfry: ${option}`, () => durationMs(value ?? byDefault))
  if (parsed < least) throw invalid(`${option} is ${parsed} ms: at least ${least} ms`)
  return parsed
}

function atLeast(least: number, value: number, option: string): number {
  if (Number.isInteger(value) && value >= least) return value
  throw invalid(`${option} is ${String(value)}: it must be a whole number of at least ${least}`)
}

function invalid(problem: string) {
  return failure('OPTION_INVALID', `createBelfry: ${problem}`)
}
