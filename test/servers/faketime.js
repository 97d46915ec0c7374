// @ts-check
/**
 * Gives processes a wrong clock by libfaketime, which is installed if it is missing. Only the wall clock is shifted:
 * the monotonic clock stays right, as on a machine with a wrong clock.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { foundOrInstalled } from './apt-install.js'

const ROOT = '/usr/lib'
const WANTED = {
  what: `there is no libfaketime for the tests: install libfaketime (looked in ${ROOT}/*/faketime)`,
  package_: 'libfaketime',
  find,
}

/**
 * The environment that shifts a process's clock. A trial run checks that the library works here, because with the right
 * time a test of wrong clocks could not fail.
 * @param {number} skewMs
 * @returns {Record<string, string>}
 */
export function wrongClock(skewMs) {
  const env = environment(foundOrInstalled(WANTED), skewMs)
  const before = Date.now()
  const shown = Number(execFileSync(process.execPath, ['-p', 'Date.now()'], { env: { ...process.env, ...env } }))
  const [least, most] = [before + skewMs - 1_000, Date.now() + skewMs + 1_000]
  if (shown >= least && shown <= most) return env
  throw new Error(`libfaketime does not turn the clock of ${process.execPath}: it is off by ${shown - before} ms`)
}

/**
 * The environment for a program with its own allocator, such as Redis. That allocator reads the time before libfaketime
 * is ready, so the program gets the allocator of the C library.
 * @param {number} skewMs
 * @returns {Record<string, string>}
 */
export function wrongServerClock(skewMs) {
  const libc = /\S*\/libc\.so\.6$/m.exec(readFileSync('/proc/self/maps', 'utf8'))?.[0]
  if (libc === undefined) throw new Error('there is no C library in the memory of this process')
  const env = wrongClock(skewMs)
  return { ...env, LD_PRELOAD: `${env.LD_PRELOAD} ${libc}` }
}

/** @param {string} library @param {number} skewMs */
function environment(library, skewMs) {
  const seconds = (skewMs / 1_000).toFixed(3)
  return {
    LD_PRELOAD: library,
    FAKETIME: skewMs < 0 ? seconds : `+${seconds}`,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
}

/**
 * Removes the library's shared memory, which a killed process leaves behind.
 * @param {number} pid of a process that has ended
 */
export function clearAfter(pid) {
  for (const file of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`]) rmSync(join('/dev/shm', file), { force: true })
}

/** @returns {string | undefined} */
function find() {
  return readdirSync(ROOT)
    .map((folder) => join(ROOT, folder, 'faketime', 'libfaketimeMT.so.1'))
    .find((file) => existsSync(file))
}
