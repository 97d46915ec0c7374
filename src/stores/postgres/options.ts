import type { Clock } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import { checkOptions } from '../../core/known-options.js'
import type { PgPool } from './connection/database.js'
import { checkSchema } from './schema.js'

export type Liveness = 'lease' | 'advisory'

export interface PostgresOptions {
  /** A pool of `pg`, or of anything that follows it. It stays yours: closing the store does not end it. */
  readonly pool?: PgPool
  /** Instead of a pool: where the database is. Needs `pg`. */
  readonly url?: string
  /** A URL that reaches the server itself, where the pool or the URL goes through a pooler: for one connection that stays. */
  readonly direct?: string
  /**
   * How others know that this process lives. `lease`: by time alone. `advisory`: also by a lock that its direct connection
   * holds, so that what it held is free at once when it dies. Default `lease`.
   */
  readonly liveness?: Liveness
  /** The schema that everything lives in. */
  readonly schema?: string
  /** Whether to hear at once of what other processes do. By default, where there is a URL to connect to. */
  readonly listen?: boolean
  /** Whether to bring the tables up to date when it is opened. */
  readonly migrate?: boolean
  /** For the timers of retries and hints; the system's by default. The store's time is the database's. */
  readonly clock?: Clock
}

export interface MigrateOptions extends Pick<PostgresOptions, 'pool' | 'url' | 'schema'> {
  /** Only say what would be done. */
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

/** What the driver would not take for an address: it makes a host of everything. The value may hold a password. */
function checkUrl(value: unknown, option: string, where: string): void {
  const isPath = typeof value === 'string' && value.startsWith('/')
  if (isPath || (typeof value === 'string' && SCHEME.test(value) && isReadable(value))) return
  const said = typeof value === 'string' && value.includes('@') ? '' : `, and is ${quote(value)}`
  throw failure(
    'OPTION_INVALID',
    `${where}: ${option} must be a URL like postgres://user:password@host:5432/database${said}`,
  )
}

/** As the driver reads it, which takes a blank, or a percent sign that stands for itself. */
function isReadable(url: string): boolean {
  return URL.canParse(url) || URL.canParse(encodeURI(url))
}

function isPool(pool: unknown): boolean {
  return ['connect', 'on'].every((name) => typeof (pool as Record<string, unknown> | null)?.[name] === 'function')
}
