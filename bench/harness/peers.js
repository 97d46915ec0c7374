// @ts-check
/**
 * The peers that Belfry is compared with are dependencies of this folder only, in exact versions. They are installed
 * when a bench first needs them.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const BENCH = new URL('../', import.meta.url)

/**
 * @param {string} path
 * @returns {{ version?: string, dependencies?: Record<string, string> }}
 */
function readPackage(path) {
  return JSON.parse(readFileSync(new URL(path, BENCH), 'utf8'))
}

/**
 * The version installed in this folder; a version that the root has installed does not count.
 * @param {string} peer
 * @returns {string | undefined}
 */
export function peerVersion(peer) {
  try {
    return readPackage(`node_modules/${peer}/package.json`).version
  } catch {
    return undefined
  }
}

export function installPeers() {
  const wanted = Object.entries(readPackage('package.json').dependencies ?? {})
  const missing = wanted.filter(([peer, version]) => peerVersion(peer) !== version)
  if (missing.length === 0) return
  console.error(`installing what is measured against: ${missing.map((peer) => peer.join(' ')).join(', ')}`)
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: fileURLToPath(BENCH),
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  })
}
