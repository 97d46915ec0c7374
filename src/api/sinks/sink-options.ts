import { checkOptions } from '../../core/checks/known-options.js'
import { DEFAULTS } from '../../core/defaults.js'
import { failure, quote } from '../../core/errors.js'
import { checkName } from '../../core/names/names.js'
import { DELIVERY_OPTIONS, type Sink } from '../../core/sink.js'
import type { SinkDefinition } from '../../engine/definitions.js'
import { type Duration, durationMs } from '../../time/duration.js'
import { parseRetry } from '../jobs/retry-options.js'
import { located } from '../located.js'

const SINK = DEFAULTS.sink
const MAX_LINGER_MS = 10_000

export function parseSinks(sinks: Readonly<Record<string, Sink>>): Map<string, SinkDefinition> {
  if (typeof sinks !== 'object' || sinks === null || Array.isArray(sinks)) {
    throw failure(
      'OPTION_INVALID',
      `createBelfry: sinks is ${quote(sinks)}; it must be an object, a sink under each name`,
    )
  }
  return new Map(Object.entries(sinks).map(([name, sink]) => [name, parseSink(name, sink)]))
}

function parseSink(name: string, sink: Sink): SinkDefinition {
  checkName(name, 'sink name')
  const where = `sink "${name}"`
  if (typeof sink?.deliver !== 'function') throw invalid(where, 'has no deliver(): see docs/sinks.md')
  const { delivery = {} } = sink
  checkOptions(delivery, DELIVERY_OPTIONS, where)
  const {
    concurrency = SINK.concurrency,
    batch = SINK.batch,
    linger = SINK.lingerMs,
    timeout = SINK.timeoutMs,
    retry = {},
    ordered = false,
  } = delivery
  const inFlight = delivery.inFlight ?? 2 * concurrency * batch
  for (const [option, count] of Object.entries({ concurrency, batch, inFlight })) checkCount(where, option, count)
  if (inFlight < batch)
    throw invalid(where, `inFlight is ${inFlight}, less than one batch of ${batch}: make it more, or batch less`)
  if (typeof ordered !== 'boolean') throw invalid(where, `ordered is ${quote(ordered)}; it must be true or false`)
  return {
    name,
    sink,
    concurrency,
    batch,
    inFlight,
    ordered,
    retry: located(where, () => parseRetry(where, retry, SINK.retry)),
    timeoutMs: within(where, 'timeout', timeout, 1, 3_600_000),
    lingerMs: within(where, 'linger', linger, 0, MAX_LINGER_MS),
  }
}

function checkCount(where: string, option: string, count: number): void {
  if (Number.isInteger(count) && count >= 1 && count <= 1_000_000) return
  throw invalid(where, `${option} is ${quote(count)}; it must be a whole number from 1 to 1000000`)
}

function within(where: string, option: string, given: Duration, least: number, most: number): number {
  const ms = located(`${where}: ${option}`, () => durationMs(given))
  if (ms >= least && ms <= most) return ms
  throw invalid(where, `${option} is ${ms} ms; it must be from ${least} to ${most} ms`)
}

function invalid(where: string, problem: string) {
  return failure('OPTION_INVALID', `${where}: ${problem}`)
}
