/** What `belfry serve` says while it runs: a readable line for whatever is worth one, or everything as JSON lines. */
import type { Belfry } from '../../belfry.js'
import { errorRecord } from '../../core/errors.js'
import type { Json } from '../../core/json.js'
import { type Logger, silentLogger } from '../../core/logger.js'
import { redacted, redactedText } from '../../server/security/redacted.js'
import { clockTime } from '../dev/account.js'
import type { ServeSettings } from '../settings/serve-settings.js'
import { type Style, styleFor } from '../terminal/style.js'

export interface ServeLog {
  /** For the library and the server. */
  readonly logger: Logger
  /** Whether it writes down what is worth knowing and no warning. */
  readonly isTalkative: boolean
  /** Something that whoever started it should read. */
  say(words: string, fields?: object): void
}

export async function serveLog({ log, logLevel }: Pick<ServeSettings, 'log' | 'logLevel'>): Promise<ServeLog> {
  // Nobody reads any more; the service goes on.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  return log === 'json' ? jsonLog(logLevel) : textLog(logLevel, styleFor(process.stdout))
}

async function jsonLog(level: string): Promise<ServeLog> {
  const { pino } = await import('pino')
  const logger = pino({
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { log: withoutSecrets, level: (label) => ({ level: label }) },
  })
  return { logger, isTalkative: true, say: (words, fields = {}) => logger.info(fields, words) }
}

/** Fields are plain data, errors among them already written out. */
function withoutSecrets(fields: Record<string, unknown>): Record<string, unknown> {
  return redacted(fields as Record<string, Json>) as Record<string, unknown>
}

function textLog(level: string, style: Style): ServeLog {
  const line = (words: string) => {
    process.stdout.write(`${style.dim(clockTime(Date.now()))}  ${words}\n`)
  }
  const wordy = (paint: (text: string) => string) => (fields: object, message: string) =>
    line(`${paint(message)} ${style.dim(JSON.stringify(withoutSecrets({ ...fields })))}`)
  return {
    logger: {
      ...silentLogger,
      ...(level === 'debug' ? { debug: wordy(style.dim), info: wordy((text) => text) } : {}),
      ...(level === 'error' ? {} : { warn: wordy(style.yellow) }),
      error: wordy(style.red),
    },
    isTalkative: level === 'debug',
    say: line,
  }
}

/** A line for what a person who looks at it would want to know. */
export function tellEvents(belfry: Belfry, { say, isTalkative }: ServeLog): void {
  belfry.on('instance:joined', ({ instance }) => say(`taking part as ${instance}`, { instance }))
  belfry.on('instance:lost', ({ instance }) => say(`given up for dead as ${instance}; joining anew`, { instance }))
  belfry.on('runs:taken-over', ({ rescued, lost }) => {
    say(`took over ${rescued + lost} runs of instances that are gone${lost > 0 ? `, ${lost} of them lost` : ''}`, {
      rescued,
      lost,
    })
  })
  belfry.on('lock:lost', ({ name }) => say(`lost the lock "${name}"`, { lock: name }))
  // Whoever may read the log is not known, so what a receiver answered is left out.
  belfry.on('run:failed', ({ run, error: { excerpt: _, ...err } }) => {
    say(`run ${run.id} failed for good: ${redactedText(err.message)}`, { run: run.id, err })
  })
  belfry.on('store:unreachable', ({ error }) => {
    const err = errorRecord(error)
    say(`the store does not answer: ${redactedText(err.message)}`, { err })
  })
  belfry.on('store:recovered', ({ downMs }) =>
    say(`the store answers again, after ${Math.round(downMs)} ms`, { downMs }),
  )
  // That it is gone is a warning of the library's, and stands in every log.
  if (isTalkative) return
  belfry.on('sink:recovered', ({ sink, downMs }) => say(`sink "${sink}" answers again`, { sink, downMs }))
}
