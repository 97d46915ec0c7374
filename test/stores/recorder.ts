import type { Logger } from '../../src/core/logger.js'

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: object
}

export function recorder(lines: LogLine[]): Logger {
  const at = (level: LogLine['level']) => (fields: object, message: string) =>
    void lines.push({ level, message, fields })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
