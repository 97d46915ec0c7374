/** The log of `belfry serve`: readable lines for the main events, or JSON lines for everything. */

import type { Belfry } from '../../belfry.js'
import type { Json } from '../../core/checks/json.js'
import { errorRecord } from '../../core/errors.js'
import { type Logger, silentLogger } from '../../core/logger.js'
import { redacted, redactedText } from '../../server/security/redacted.js'
import { clockTime } from '../dev/run-lines.js'
import type { ServeSettings } from '../settings/serve-settings.js'
import { cleanText, writeLine } from '../terminal/clean-text.js'
import { type Style, styleFor } from '../terminal/style.js'

export interface ServeLog {
  /** The logger of the library and the server. */
  readonly logger: Logger
  /** Whether the logger also writes info messages. */
  readonly isVerbose: boolean
  /** Logs a message for the person who started the service. */
  say(message: string, fields?: object): void
}

export async function serveLog({ log, logLevel }: Pick<ServeSettings, 'log' | 'logLevel'>): Promise<ServeLog> {
  // A closed pipe must not end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  return log === 'json' ? jsonLog(logLevel) : textLog(logLevel, styleFor(process.stdout))
}

async function jsonLog(level: string): Promise<ServeLog> {
  const { pino } = await import('pino')
  const logger = pino({
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { log: withoutSecrets, level: (label) => ({ level: label }) },
    hooks: {
      streamWrite: cleanText,
      logMethod([fields, message], log) {
        log.call(this, fields, redactedText(String(message)))
      },
    },
  })
  return { logger, isVerbose: true, say: (message, fields = {}) => logger.info(fields, message) }
}

/** The fields are JSON: the library and the server log errors as records. */
function withoutSecrets(fields: Record<string, unknown>): Record<string, unknown> {
  return redacted(fields as Record<string, Json>) as Record<string, unknown>
}

function textLog(level: string, style: Style): ServeLog {
  const line = (message: string) => {
    writeLine(process.stdout, `${style.dim(clockTime(Date.now()))}  ${message}`)
  }
  const withFields = (paint: (text: string) => string) => (fields: object, message: string) =>
    line(`${paint(redactedText(message))} ${style.dim(JSON.stringify(withoutSecrets({ ...fields })))}`)
  return {
    logger: {
      ...silentLogger,
      ...(level === 'debug' ? { debug: withFields(style.dim), info: withFields((text) => text) } : {}),
      ...(level === 'error' ? {} : { warn: withFields(style.yellow) }),
      error: withFields(style.red),
    },
    isVerbose: level === 'debug',
    say: line,
  }
}

/** Logs a line for each event that an operator wants to know. */
export function logEvents(belfry: Belfry, { say, isVerbose }: ServeLog): void {
  belfry.on('instance:joined', ({ instance }) => say(`joined as ${instance}`, { instance }))
  belfry.on('instance:lost', ({ instance }) => say(`declared dead as ${instance}; joining again`, { instance }))
  belfry.on('runs:taken-over', ({ rescued, lost }) => {
    say(`took over ${rescued + lost} runs of dead instances${lost > 0 ? `, ${lost} of them lost` : ''}`, {
      rescued,
      lost,
    })
  })
  belfry.on('lock:lost', ({ name }) => say(`lost the lock "${name}"`, { lock: name }))
  belfry.on('store:unreachable', ({ error }) => {
    const err = errorRecord(error)
    say(`the store is unreachable: ${redactedText(err.message)}`, { err })
  })
  belfry.on('store:recovered', ({ downMs }) =>
    say(`the store answers again, after ${Math.round(downMs)} ms`, { downMs }),
  )
  // A verbose log already has the library's own info message about the recovery.
  if (isVerbose) return
  belfry.on('sink:recovered', ({ sink, downMs }) => say(`sink "${sink}" answers again`, { sink, downMs }))
}
