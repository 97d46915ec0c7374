/** The few calls of a pino-shaped logger: an object with fields first, then the message. */
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

/** What is worth knowing when nobody has set up logging: warnings and errors, a line each, on standard error. */
export const stderrLogger: Logger = {
  ...silentLogger,
  warn: (fields, message) => writeLine('warning', fields, message),
  error: (fields, message) => writeLine('error', fields, message),
}

function writeLine(level: string, fields: object, message: string): void {
  process.stderr.write(`belfry ${level}: ${message} ${JSON.stringify(fields)}\n`)
}

/** A logger whose lines carry these fields too, whether the given one can make children or not. */
export function withFields(log: Logger, fields: object): Logger {
  if (log.child !== undefined) return log.child(fields)
  const line = (level: Level) => {
    // A logger that hears nothing must still be known as one.
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

/** Whether nobody would hear: then what is to be said need not be made. */
export function isSilent(log: Logger, level: Level): boolean {
  return log[level] === silentLogger[level]
}

/** A logger that throws must not take the engine with it. */
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
      // There is nowhere left to say so.
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
