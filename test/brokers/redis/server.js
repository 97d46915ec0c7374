// @ts-check
/** Settings, commands and reading of a single Redis server, shared by Redis Cluster and Sentinel. */
import { foundOrInstalled } from '../../servers/apt-install.js'
import { findProgram } from '../../servers/find-program.js'
import { tellRedis } from '../../servers/redis.js'

export function server() {
  return foundOrInstalled({
    ...{ what: 'there is no Redis for the tests', package_: 'redis-server' },
    find: () => findProgram('redis-server') ?? findProgram('valkey-server'),
  })
}

/** A key with a type other than stream. */
export const NO_STREAM = 'no-stream'

/** A write is acknowledged only while a replica keeps up, as docs/sinks.md recommends. */
export const SETTINGS = [
  ...['--bind', '127.0.0.1', '--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'],
  ...['--repl-diskless-sync-delay', '0', '--min-replicas-to-write', '1', '--min-replicas-max-lag', '5'],
]

/** A server that is rewriting its log ignores the signal, so it is sent again. */
const AGAIN_MS = 1_000

/** @param {import('../local-cluster.js').LocalCluster} cluster @param {string} node */
export async function terminate(cluster, node) {
  const process = cluster.process(node)
  const again = setInterval(() => process.signal('SIGTERM'), AGAIN_MS)
  try {
    await process.end('SIGTERM')
  } finally {
    clearInterval(again)
  }
}

/** @param {number} port @param {string} command @param {string[]} args */
export async function tell(port, command, ...args) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`no answer from port ${port}`)), 5_000).unref()
  })
  return Promise.race([tellRedis(`redis://127.0.0.1:${port}`, command, ...args), late])
}

/**
 * All entries of a stream, read by an independent client with XRANGE.
 * @param {number} port
 * @param {string} stream
 * @returns {Promise<import('../cluster.js').Arrived[]>}
 */
export async function entriesOf(port, stream) {
  const entries = /** @type {[string, string[]][]} */ (await tell(port, 'XRANGE', stream, '-', '+'))
  return entries.map(([id, fields]) => {
    const value = (/** @type {string} */ name) => fields[fields.indexOf(name) + 1] ?? ''
    return { place: stream, key: value('key'), body: value('data'), storedAt: Number(id.split('-')[0]) }
  })
}
