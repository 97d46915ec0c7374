/** The driver, which the user installs: it is only needed where there is a URL to connect to. */
import { createRequire } from 'node:module'
import { failure } from '../../../core/errors.js'
import type { PgPool } from './database.js'
import type { DirectClient } from './direct-connection.js'

interface Pg {
  readonly Pool: new (options: Readonly<Record<string, unknown>>) => PgPool
  readonly Client: new (options: Readonly<Record<string, unknown>>) => DirectClient
}

const LIMITS = { connectionTimeoutMillis: 5_000, keepAlive: true } as const

/** Its idle connections keep no process alive: a script that is done may end. */
export function newPool(options: Readonly<Record<string, unknown>>): PgPool {
  return new (loadPg().Pool)({ max: 10, allowExitOnIdle: true, ...LIMITS, ...options })
}

export function newClient(url: string): DirectClient {
  return new (loadPg().Client)({ connectionString: url, ...LIMITS })
}

function loadPg(): Pg {
  try {
    return createRequire(import.meta.url)('pg') as Pg
  } catch (cause) {
    throw failure('UNSUPPORTED', 'the Postgres store needs the driver `pg` for a url: npm install pg', { cause })
  }
}
