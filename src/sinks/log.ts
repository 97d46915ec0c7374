/** A sink that writes each event to a log, for first steps and tests. */

import { checkOptions } from '../core/checks/known-options.js'
import { failure, quote } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import { DELIVERED, DELIVERY_OPTIONS, type DeliveryOptions, deliveryOptions, type Sink } from '../core/sink.js'
import { cleanText } from '../core/visible-text.js'
import { type OverrideOptions, overrideParser } from './overrides.js'

export interface LogOptions extends DeliveryOptions {
  /** A pino-like logger. Default: one line of JSON per event on standard output. */
  readonly logger?: Pick<Logger, 'info'>
  /** Whether schedules may set `key` in their `toOptions`. Default: only if the sink is not ordered. */
  readonly overrides?: Pick<OverrideOptions, 'key'>
}

const stdout: Pick<Logger, 'info'> = {
  info: (fields, message) => void process.stdout.write(`${cleanText(JSON.stringify({ message, ...fields }))}\n`),
}

export function log(options: LogOptions = {}): Sink {
  checkOptions(options, ['logger', 'overrides', ...DELIVERY_OPTIONS], 'log()')
  const { logger = stdout } = options
  if (typeof logger?.info !== 'function') {
    throw failure('OPTION_INVALID', `log(): logger is ${quote(logger)}; it must be pino-shaped, with info()`)
  }
  const where = 'a log sink'
  const parse = overrideParser<never>(options.overrides, { where, fields: {}, isKeyHarmless: options.ordered !== true })
  return {
    delivery: deliveryOptions(options),
    check: (given, key) => void parse(given, key),
    async deliver(messages) {
      return messages.map(({ options: _, startedAt: __, ...event }) => {
        logger.info(event, 'event')
        return DELIVERED
      })
    },
  }
}
