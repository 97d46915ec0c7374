/** A sink that writes each event to a log, for first steps and tests. */

import { checkOptions } from '../core/checks/known-options.js'
import { failure, quote } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import { DELIVERED, DELIVERY_OPTIONS, type DeliveryOptions, deliveryOptions, type Sink } from '../core/sink.js'

export interface LogOptions extends DeliveryOptions {
  /** A pino-like logger. Default: one line of JSON per event on standard output. */
  readonly logger?: Pick<Logger, 'info'>
}

const stdout: Pick<Logger, 'info'> = {
  info: (fields, message) => void process.stdout.write(`${JSON.stringify({ message, ...fields })}\n`),
}

export function log(options: LogOptions = {}): Sink {
  checkOptions(options, ['logger', ...DELIVERY_OPTIONS], 'log()')
  const { logger = stdout } = options
  if (typeof logger?.info !== 'function') {
    throw failure('OPTION_INVALID', `log(): logger is ${quote(logger)}; it must be pino-shaped, with info()`)
  }
  return {
    delivery: deliveryOptions(options),
    check(given) {
      checkOptions(given, [], 'a log sink')
    },
    async deliver(messages) {
      return messages.map(({ options: _, startedAt: __, ...event }) => {
        logger.info(event, 'event')
        return DELIVERED
      })
    },
  }
}
