/**
 * What happens to a path before a driver opens it. Checks come first, because a driver's errors do not say what is wrong. Then
 * a file that does not exist is created, because a driver would create it with the rights of the umask.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { failure } from '../../../core/errors.js'
import { networkKind } from './network-file-system.js'

/** Returns true when this user may write there, else the system's error code. */
type Access = (path: string) => true | string

export function checkPath(path: string, access: Access = mayWrite): void {
  if (!existsSync(dirname(path))) throw noFolder(dirname(path))
  const file = realPath(path)
  const folder = dirname(file)
  if (!existsSync(folder)) throw noFolder(folder)
  const found = statSync(file, { throwIfNoEntry: false })
  if (found !== undefined && !found.isFile()) {
    throw failure(
      'STORE_INVALID',
      `${path} is ${found.isDirectory() ? 'a folder' : 'no file'}: give the path of a file`,
    )
  }
  checkAccess(existsSync(file) ? [file, folder] : [folder], access)
  const network = networkKind(folder)
  if (network !== undefined) {
    throw failure(
      'STORE_INVALID',
      `${folder} is on a network file system (${network}), where SQLite's locks do not hold: use a local disk, or Postgres or Redis to share a store between hosts`,
    )
  }
}

function checkAccess(targets: readonly string[], access: Access): void {
  for (const target of targets) {
    const answer = access(target)
    if (answer === true) continue
    const why =
      answer === 'EROFS'
        ? 'is on a file system that is mounted read-only: mount it for writing, or give a path elsewhere'
        : 'cannot be written by this user: give it write access to the file and its folder, or give a path elsewhere'
    throw failure('STORE_READ_ONLY', `${target} ${why}`)
  }
}

function mayWrite(path: string): true | string {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'EACCES'
  }
}

/**
 * Creates the file, unless it exists: only its owner may read it, whatever the umask. SQLite reads an empty file as an empty
 * database, and gives `-wal` and `-shm` the mode of the file.
 */
export function createPrivately(path: string): void {
  let file: number
  try {
    file = openSync(realPath(path), 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw error
  }
  fchmodSync(file, 0o600)
  closeSync(file)
}

/** Resolves symlinks as SQLite does, also when the file at the end does not exist yet. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ELOOP') {
      throw failure('STORE_INVALID', `${path} is a symlink that leads back to itself: give the path of a file`)
    }
  }
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
    return realPath(resolve(dirname(path), readlinkSync(path)))
  }
  return existsSync(dirname(path)) ? join(realpathSync(dirname(path)), basename(path)) : path
}

function noFolder(folder: string) {
  return failure('STORE_UNREACHABLE', `the folder ${folder} of the SQLite file does not exist: create it first`)
}
