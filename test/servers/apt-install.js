// @ts-check
/** Finds a program that the tests need on this machine, and installs it by apt if it is missing. */
import { execFileSync } from 'node:child_process'

/**
 * @typedef {object} Wanted
 * @property {string} what the message when it is missing: what is missing, and what to do about it
 * @property {string} package_ its apt package
 * @property {() => string | undefined} find its path, if it is installed
 * @property {NodeJS.ProcessEnv} [env] the environment in which `apt-get` and `sudo` are found
 */

/**
 * @param {Wanted} wanted
 * @returns {string}
 */
export function foundOrInstalled({ what, package_, find, env = process.env }) {
  const found = find()
  if (found !== undefined) return found
  try {
    apt(env, 'update', '-q')
    apt(env, 'install', '-q', '-y', '--no-install-recommends', package_)
  } catch (error) {
    throw new Error(`${what}; installing it failed: ${String(error)}`, { cause: error })
  }
  const installed = find()
  if (installed === undefined) throw new Error(`${what}; it is not there even after apt installed ${package_}`)
  return installed
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {string[]} args
 */
function apt(env, ...args) {
  // Another installation may hold the lock: wait for it.
  const line = ['apt-get', '-o', 'DPkg::Lock::Timeout=300', ...args]
  const [command = '', ...rest] = process.getuid?.() === 0 ? line : ['sudo', '-n', ...line]
  execFileSync(command, rest, { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' }, stdio: 'pipe' })
}
