/** What can be wrong with a file, said in words that tell what to do. */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { BelfryError, type ErrorCode, failure } from '../../core/errors.js'

/** The result codes that mean something to us. Extended codes carry the plain one in their low byte. */
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

/** The plain result code of an error, whichever driver threw it. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, rawCode, errcode } = error as { code?: unknown; rawCode?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  if (typeof rawCode === 'number') return rawCode & 0xff
  if (typeof code !== 'string') return undefined
  return NAMES[code.split('_').slice(0, 2).join('_')]
}

/** Somebody else is writing: to be tried again. */
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

/** An error of the driver in our words; any other error as it is. */
export function fileError(error: unknown, file: string): unknown {
  if (error instanceof BelfryError) return error
  const code = resultCode(error)
  const explanation = code === undefined ? undefined : EXPLANATIONS[code]
  if (explanation === undefined) return error
  return failure(explanation[0], `the SQLite file ${file} ${explanation[1]}`, { cause: error })
}

/** Magic numbers of file systems that are shared over a network, where locks and shared memory do not hold. */
const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
])

/** Looks at a path before it is opened, for what a driver would say less clearly. */
export function checkPath(path: string): void {
  const folder = dirname(path)
  if (!existsSync(folder)) {
    throw failure('STORE_UNREACHABLE', `the folder ${folder} of the SQLite file does not exist: create it first`)
  }
  if (existsSync(path) && statSync(path).isDirectory()) {
    throw failure('STORE_INVALID', `${path} is a folder: give the path of a file`)
  }
  const target = existsSync(path) ? path : folder
  if (!mayWrite(target) || !mayWrite(folder)) {
    throw failure('STORE_READ_ONLY', `${target} cannot be written by this user: Belfry needs the file and its folder`)
  }
  const network = networkKind(folder)
  if (network !== undefined) {
    throw failure(
      'STORE_INVALID',
      `${folder} is on a network file system (${network}), where SQLite's locks do not hold: use a local disk, or Postgres or Redis to share a store between hosts`,
    )
  }
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** The name of the network file system that a folder is on, as far as the system tells. */
export function networkKind(folder: string, typeOf = fileSystemType): string | undefined {
  const type = typeOf(folder)
  return type === undefined ? undefined : NETWORK.get(type >>> 0)
}

function fileSystemType(folder: string): number | undefined {
  try {
    return statfsSync(folder).type
  } catch {
    return undefined
  }
}
