import { checkOptions } from '../../core/checks/known-options.js'
import type { Clock } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import type { PgPool } from './connection/driver.js'
import { checkSchema } from './schema/schema-name.js'

export type Liveness = 'lease' | 'advisory'

export interface PostgresOptions {
  /** A pool of `pg`, or a compatible one. Closing the store does not end it. */
  readonly pool?: PgPool
  /** The database, instead of a pool. Needs `pg`. */
  readonly url?: string
  /**
   * A URL that reaches the server itself, for the connection that listens and proves life. Pass it beside `pool`, or
   * when `url` leads to a pooler.
   */
  readonly direct?: string
  /**
   * How other processes detect that this one has died. `lease`: its lease expires. `advisory`: also its direct
   * connection ends, which frees an advisory lock, so that its locks and runs are taken over as soon as it dies.
   * Default `lease`.
   */
  readonly liveness?: Liveness
  /** The schema of all tables and functions. Default `belfry`. */
  readonly schema?: string
  /** Whether to receive hints of other processes' changes by LISTEN. Default: true if `direct` or `url` is given. */
  readonly listen?: boolean
  /** Whether to migrate the schema when the store opens. */
  readonly migrate?: boolean
  /** The clock for the timers of retries and hints. Timestamps always come from the database. */
  readonly clock?: Clock
}

export interface MigrateOptions extends Pick<PostgresOptions, 'pool' | 'url' | 'schema'> {
  /** Report what would be done, without doing it. */
  readonly dryRun?: boolean
}

const PLACE = ['pool', 'url', 'schema'] as const

export function checkPostgresOptions(options: PostgresOptions): void {
  checkOptions(options, [...PLACE, 'direct', 'liveness', 'listen', 'migrate', 'clock'], 'postgres()')
  const { liveness = 'lease', direct } = options
  checkPlace(options, 'postgres()')
  if (direct !== undefined) checkUrl(direct, 'direct', 'postgres()')
  if (liveness !== 'lease' && liveness !== 'advisory') {
    throw failure('OPTION_INVALID', `liveness is ${quote(String(liveness))}: allowed are lease and advisory`)
  }
  checkSwitches(options, ['listen', 'migrate'], 'postgres()')
}

export function checkMigrateOptions(options: MigrateOptions): void {
  checkOptions(options, [...PLACE, 'dryRun'], 'migratePostgres()')
  checkPlace(options, 'migratePostgres()')
  checkSwitches(options, ['dryRun'], 'migratePostgres()')
}

function checkPlace({ pool, url, schema = 'belfry' }: PostgresOptions, where: string): void {
  checkSchema(schema)
  if ((pool === undefined) === (url === undefined)) {
    throw failure('OPTION_INVALID', 'the Postgres store needs either a pool or a url')
  }
  if (url !== undefined) checkUrl(url, 'url', where)
  else if (!isPool(pool)) throw failure('OPTION_INVALID', `${where}: pool is no pool of \`pg\`: ${quote(String(pool))}`)
}

function checkSwitches(options: object, names: readonly string[], where: string): void {
  for (const [name, value] of Object.entries(options)) {
    if (!names.includes(name) || value === undefined || typeof value === 'boolean') continue
    throw failure('OPTION_INVALID', `${where}: ${name} is ${quote(value)}; it must be true or false`)
  }
}

const SCHEME = /^(?:postgres|postgresql|socket):/i

/**
 * Checked here, because the driver takes any text for a host name. The value may contain a password, so the error shows
 * it only if it has no `@`.
 */
function checkUrl(value: unknown, option: string, where: string): void {
  const isPath = typeof value === 'string' && value.startsWith('/')
  if (isPath || (typeof value === 'string' && SCHEME.test(value) && isReadable(value))) return
  const said = typeof value === 'string' && value.includes('@') ? '' : `, and is ${quote(value)}`
  throw failure(
    'OPTION_INVALID',
    `${where}: ${option} must be a URL like postgres://user:password@host:5432/database${said}`,
  )
}

/** The driver also accepts URLs with blanks, and with percent signs that encode nothing. So both pass here. */
function isReadable(url: string): boolean {
  return URL.canParse(url) || URL.canParse(encodeURI(url))
}

function isPool(pool: unknown): boolean {
  return ['connect', 'on'].every((name) => typeof (pool as Record<string, unknown> | null)?.[name] === 'function')
}

/** The URL of the direct connection, if the options give one. */
export function directUrlOf({ direct, url, listen, liveness = 'lease' }: PostgresOptions): string | undefined {
  const found = direct ?? url
  if (found === undefined && (listen || liveness === 'advisory')) {
    const purpose = listen ? 'to listen' : 'for the advisory mode'
    throw failure(
      'OPTION_INVALID',
      `${purpose}, the Postgres store needs a connection of its own: pass \`direct\` with a URL that reaches the server itself`,
    )
  }
  return found
}
