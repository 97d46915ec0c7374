/** What can be wrong with a database, said in words that tell what to do. Told apart by SQLSTATE, never by message. */
import { BelfryError, type ErrorCode, failure } from '../../core/errors.js'

export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Somebody else was faster, and nothing was changed: to be tried again. That includes two that insert the same. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error)
  return state === '40001' || state === '40P01' || state === '23505'
}

/** What an operation raises that was begun at an isolation level at which it would see the past. Nothing was changed. */
export const WRONG_ISOLATION = 'BF001'

export function isWrongIsolation(error: unknown): boolean {
  return sqlState(error) === WRONG_ISOLATION
}

type Explanation = readonly [ErrorCode, string]

const UNREACHABLE: Explanation = ['STORE_UNREACHABLE', 'does not answer: check the server, the network and the URL']
const NOT_MIGRATED: Explanation = [
  'STORE_INVALID',
  'has no tables of this version: run `belfry migrate`, or pass { migrate: true }',
]

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  '25006': ['STORE_UNREACHABLE', 'is read-only, as after a failover: connect to the primary'],
  '28000': ['STORE_UNREACHABLE', 'refuses this user: check the user and the password'],
  '28P01': ['STORE_UNREACHABLE', 'refuses the password: check the user and the password'],
  '3D000': ['STORE_UNREACHABLE', 'does not exist on that server: check the URL'],
  '3F000': NOT_MIGRATED,
  '42P01': NOT_MIGRATED,
  '42501': ['STORE_INVALID', 'refuses this user: grant it the rights on the schema, its tables and its functions'],
  '53100': ['STORE_FULL', 'cannot grow: the disk is full; free some space, and everything goes on'],
  '53300': ['STORE_UNREACHABLE', 'has no connection left: use a smaller pool, or a pooler before the server'],
  '57P01': ['STORE_UNREACHABLE', 'is shutting down'],
  '57P02': ['STORE_UNREACHABLE', 'has crashed and recovers'],
  '57P03': ['STORE_UNREACHABLE', 'is starting up or shutting down'],
}

/** An error of the driver in our words; any other error as it is. */
export function storeError(error: unknown, schema: string): unknown {
  if (error instanceof BelfryError || error instanceof TypeError || !(error instanceof Error)) return error
  const state = sqlState(error)
  // Without a state it did not come from the server: the connection is what failed.
  const lost = state === undefined || state.startsWith('08')
  const explanation = lost ? UNREACHABLE : EXPLANATIONS[state]
  if (explanation === undefined) return error
  const [code, problem] = explanation
  return failure(code, `the Postgres database of schema "${schema}" ${problem} (${error.message})`, { cause: error })
}
