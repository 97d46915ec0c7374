// @ts-check
/** Programs that the tests need: where they are on this machine, or where they are once apt has installed them. */
import { execFileSync } from 'node:child_process'

/**
 * @typedef {object} Wanted
 * @property {string} what what is missing, and what to do about it, should it be
 * @property {string} package_ what apt calls it
 * @property {() => string | undefined} find where it is
 * @property {NodeJS.ProcessEnv} [env] where `apt-get` and `sudo` are found
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
  // Somebody else may be installing: that ends.
  const line = ['apt-get', '-o', 'DPkg::Lock::Timeout=300', ...args]
  const [command = '', ...rest] = process.getuid?.() === 0 ? line : ['sudo', '-n', ...line]
  execFileSync(command, rest, { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' }, stdio: 'pipe' })
}
