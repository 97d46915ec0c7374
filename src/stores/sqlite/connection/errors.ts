/** Errors of SQLite drivers as errors of Belfry that say what to do. */
import { BelfryError, type ErrorCode, failure } from '../../../core/errors.js'
import { moved } from './file-identity.js'

/** The result codes of SQLite that matter here. The low byte of an extended code is its plain code. */
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const NOTADB = 26

const NAMES: Readonly<Record<string, number>> = {
  SQLITE_BUSY: BUSY,
  SQLITE_LOCKED: LOCKED,
  SQLITE_READONLY: READONLY,
  SQLITE_IOERR: IOERR,
  SQLITE_CORRUPT: CORRUPT,
  SQLITE_FULL: FULL,
  SQLITE_CANTOPEN: CANTOPEN,
  SQLITE_NOTADB: NOTADB,
}

/** SQLite found that the file was moved or deleted after it was opened. */
const READONLY_DBMOVED = READONLY | (4 << 8)

/** The result code of an error of any driver; undefined for other errors. */
function extendedCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, rawCode, errcode } = error as { code?: unknown; rawCode?: unknown; errcode?: unknown }
  if (typeof code !== 'string') return undefined
  if (code === 'ERR_SQLITE_ERROR') return typeof errcode === 'number' ? errcode : undefined
  if (!code.startsWith('SQLITE_')) return undefined
  if (typeof rawCode === 'number') return rawCode
  return code === 'SQLITE_READONLY_DBMOVED' ? READONLY_DBMOVED : NAMES[code.split('_').slice(0, 2).join('_')]
}

function resultCode(error: unknown): number | undefined {
  const code = extendedCode(error)
  return code === undefined ? undefined : code & 0xff
}

/** Whether the error says that another connection is writing. The operation can be tried again. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  return code === BUSY || code === LOCKED
}

type Explanation = readonly [ErrorCode, string]

const EXPLANATIONS: Readonly<Record<number, Explanation>> = {
  [READONLY]: ['STORE_READ_ONLY', 'cannot be written: give this user write access to the file and its folder'],
  [FULL]: ['STORE_FULL', 'cannot grow: the disk is full, or a quota is; free some space, and everything goes on'],
  [CORRUPT]: ['STORE_INVALID', 'is damaged: restore it from a backup, or move it away to start with an empty one'],
  [NOTADB]: ['STORE_INVALID', 'is no SQLite database: give another path, or move the file away'],
  [CANTOPEN]: ['STORE_UNREACHABLE', 'cannot be opened: check the path and the rights on the file and its folder'],
  [IOERR]: ['STORE_UNREACHABLE', 'cannot be read or written: the disk reports an error'],
}

/** Turns a driver's error into a BelfryError. Other errors are returned as they are. */
export function fileError(error: unknown, file: string): unknown {
  if (error instanceof BelfryError) return error
  if (extendedCode(error) === READONLY_DBMOVED) return moved(file, false)
  return explained(error, file, resultCode(error))
}

/** The same for an error while opening, which libsql may throw without a code. */
export function openError(error: unknown, file: string): unknown {
  return error instanceof BelfryError ? error : explained(error, file, resultCode(error) ?? CANTOPEN)
}

function explained(error: unknown, file: string, code: number | undefined): unknown {
  const explanation = code === undefined ? undefined : EXPLANATIONS[code]
  if (explanation === undefined) return error
  return failure(explanation[0], `the SQLite file ${file} ${explanation[1]}`, { cause: error })
}
