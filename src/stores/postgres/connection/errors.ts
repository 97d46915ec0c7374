/** Errors of the driver, classified by SQLSTATE: what they prove about the database, and what to do about them. */
import { BelfryError, type ErrorCode, failure } from '../../../core/errors.js'

export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !SYSTEM_ERROR.test(code) ? code : undefined
}

/** Codes of system errors such as EPIPE have the form of a SQLSTATE, but no SQLSTATE class begins with E. */
const SYSTEM_ERROR = /^E/

/**
 * What an error proves:
 * - `conflict`: another transaction was faster, and nothing was changed. Includes two inserts of the same key.
 * - `refused`: the server was not reached, or declined, and nothing was changed.
 * - `broken`: the connection was lost, and it is unknown whether anything was changed.
 */
export type Trouble = 'conflict' | 'refused' | 'broken'

const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01', '23505'])

/**
 * Read-only; too many connections; starting up; not connected; rejected; transaction ended as idle; transaction too
 * long.
 */
const REFUSALS: ReadonlySet<string> = new Set(['25006', '53300', '57P03', '08001', '08004', '25P03', '25P04'])

/** Shutdown by an administrator (perhaps after a commit); crash; database dropped; session ended as idle. */
const BREAKS: ReadonlySet<string> = new Set(['57P01', '57P02', '57P04', '57P05'])

/** System errors that occur only while a connection is being opened, so no statement was sent. */
const UNCONNECTED: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'])

export function troubleOf(error: unknown): Trouble | undefined {
  if (unusable.has(error as object)) return 'refused'
  if (!isOfDriver(error)) return undefined
  const state = sqlState(error)
  if (state === undefined) return UNCONNECTED.has((error as { code?: unknown }).code) ? 'refused' : 'broken'
  if (CONFLICTS.has(state)) return 'conflict'
  if (REFUSALS.has(state)) return 'refused'
  return BREAKS.has(state) || state.startsWith('08') ? 'broken' : undefined
}

const unusable = new WeakSet<object>()

/** For a server that answers but cannot be used as it is, such as a standby. Nothing was changed on it. */
export function unusableServer(message: string): BelfryError {
  const error = failure('STORE_UNREACHABLE', message)
  unusable.add(error)
  return error
}

const ofDriver = new WeakSet<Error>()

/**
 * Marks errors that a call of the driver throws. Only these prove something about the database. An error that a
 * handler, or Belfry, throws between two statements may look the same.
 */
export function driven<Result>(call: Promise<Result>): Promise<Result> {
  return call.catch((error: unknown) => {
    if (error instanceof Error && !(error instanceof BelfryError)) ofDriver.add(error)
    throw error
  })
}

export function isOfDriver(error: unknown): error is Error {
  return error instanceof Error && ofDriver.has(error)
}

/** The SQLSTATE that an operation raises, before it changes anything, at any isolation level but read committed. */
export const WRONG_ISOLATION = 'BF003'

export function isWrongIsolation(error: unknown): boolean {
  return sqlState(error) === WRONG_ISOLATION
}

type Explanation = readonly [ErrorCode, string]

const UNREACHABLE: Explanation = ['STORE_UNREACHABLE', 'does not answer: check the server, the network and the URL']
const NOT_MIGRATED: Explanation = [
  'STORE_INVALID',
  'has no tables of this version: run `belfry migrate`, or pass { migrate: true }',
]

const LEFT_OPEN: Explanation = [
  'STORE_INVALID',
  'was reached over a connection on which a transaction was still open: look for a `begin` in the app whose client is released without `commit` or `rollback`',
]

const ROW_SECURITY: Explanation = [
  'STORE_INVALID',
  'refuses a row by a policy of row-level security: alter table … disable row level security, or alter role … bypassrls',
]

/** A policy's refusal has the same SQLSTATE as a missing grant. The server routine that raised it tells them apart. */
function isRefusedByPolicy(error: Error): boolean {
  return sqlState(error) === '42501' && (error as { readonly routine?: unknown }).routine === 'ExecWithCheckOptions'
}

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  '25006': ['STORE_UNREACHABLE', 'has become read-only for this session'],
  '25001': LEFT_OPEN,
  '25P02': LEFT_OPEN,
  '25P03': ['STORE_UNREACHABLE', 'ended a transaction in which this process had stood still for too long'],
  '25P04': ['STORE_UNREACHABLE', 'ended a transaction after its transaction_timeout: let this user have a longer one'],
  '28000': ['STORE_UNREACHABLE', 'refuses this user: check the user and the password'],
  '28P01': ['STORE_UNREACHABLE', 'refuses the password: check the user and the password'],
  '3D000': ['STORE_UNREACHABLE', 'does not exist on that server: check the URL'],
  '3F000': NOT_MIGRATED,
  '42P01': NOT_MIGRATED,
  '42883': NOT_MIGRATED,
  '42501': [
    'STORE_INVALID',
    'refuses this user: grant it usage on the schema, select, insert, update and delete on its tables, usage on its sequences, and execute on its functions',
  ],
  '53100': ['STORE_FULL', 'cannot grow: the disk is full; free some space, and everything goes on'],
  '53200': ['STORE_UNREACHABLE', 'is out of memory'],
  '53300': ['STORE_UNREACHABLE', 'has no connection left: use a smaller pool, or a pooler before the server'],
  '55P03': ['STORE_UNREACHABLE', 'gave up waiting for a row: let this user have a longer lock_timeout'],
  '57014': ['STORE_UNREACHABLE', 'cancelled a statement: let this user have a longer statement_timeout'],
  '57P01': ['STORE_UNREACHABLE', 'is shutting down, or somebody ended this connection'],
  '57P02': ['STORE_UNREACHABLE', 'has crashed and recovers'],
  '57P03': ['STORE_UNREACHABLE', 'is starting up or shutting down'],
  '57P04': ['STORE_UNREACHABLE', 'was dropped'],
  '57P05': ['STORE_UNREACHABLE', 'ended a connection that was idle'],
}

/**
 * Explains an error of the driver. Errors of Belfry, and programming errors such as a TypeError, are returned
 * unchanged. `of` names the connection if it is not one of the pool's, and `because` adds a reason.
 */
export function storeError(error: unknown, schema: string, { of = '', because = '' } = {}): unknown {
  if (error instanceof BelfryError || error instanceof TypeError || !(error instanceof Error)) return error
  const state = sqlState(error)
  // An error without a SQLSTATE did not come from the server: the connection failed.
  const lost = state === undefined || state.startsWith('08')
  const explanation = lost ? UNREACHABLE : isRefusedByPolicy(error) ? ROW_SECURITY : EXPLANATIONS[state]
  if (explanation === undefined) return error
  const [code, problem] = explanation
  return failure(code, `${of}the Postgres database of schema "${schema}" ${problem}${because} (${error.message})`, {
    cause: error,
  })
}
