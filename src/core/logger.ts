import { cleanText } from './visible-text.js'

/** The methods of a pino-shaped logger that Belfry calls: fields first, then the message. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child?(fields: object): Logger
}

export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
}

/** The default: warnings and errors on standard error, a line each; the stack of an error follows on lines of its own. */
export const stderrLogger: Logger = {
  ...silentLogger,
  warn: (fields, message) => writeLine('warning', fields, message),
  error: (fields, message) => writeLine('error', fields, message),
}

function writeLine(level: string, fields: object, message: string): void {
  const { err: { stack = '', ...err } = {}, ...rest } = fields as { readonly err?: { readonly stack?: string } }
  const shown = JSON.stringify({ ...rest, ...('err' in fields ? { err } : {}) })
  const calls = stack.slice(Math.max(stack.indexOf('\n    at '), 0))
  process.stderr.write(`${cleanText(`belfry ${level}: ${message} ${shown}${calls}`)}\n`)
}

/** A child logger with these fields, also for a logger without `child`. */
export function withFields(log: Logger, fields: object): Logger {
  if (log.child !== undefined) return log.child(fields)
  const line = (level: Level) => {
    // A silent level must keep its function, because `isSilent` compares by identity.
    if (isSilent(log, level)) return silentLogger[level]
    return (own: object, message: string) => log[level]({ ...fields, ...own }, message)
  }
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: (more) => withFields(log, { ...fields, ...more }),
  }
}

type Level = 'debug' | 'info' | 'warn' | 'error'

/** Whether lines of this level are dropped, so that the caller need not compose them. */
export function isSilent(log: Logger, level: Level): boolean {
  return log[level] === silentLogger[level]
}

/** Wraps a logger so that its exceptions are ignored: a logger that throws must not stop the engine. */
export function guarded(log: Logger): Logger {
  const guard = (level: Level) => (isSilent(log, level) ? silentLogger[level] : guardedCall(log, level))
  return {
    debug: guard('debug'),
    info: guard('info'),
    warn: guard('warn'),
    error: guard('error'),
    ...(log.child === undefined ? {} : { child: (fields: object) => guardedChild(log, fields) }),
  }
}

function guardedCall(log: Logger, level: Level) {
  return (fields: object, message: string): void => {
    try {
      log[level](fields, message)
    } catch {
      // The logger itself failed, so the error cannot be reported.
    }
  }
}

function guardedChild(log: Logger, fields: object): Logger {
  try {
    return guarded(log.child?.(fields) ?? log)
  } catch {
    return guarded(log)
  }
}
