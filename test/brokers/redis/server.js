// @ts-check
/** What Redis Cluster and Sentinel have in common: how a server is started, asked, and read. */
import { foundOrInstalled } from '../../servers/apt.js'
import { program } from '../../servers/program.js'
import { tellRedis } from '../../servers/redis.js'

export function server() {
  return foundOrInstalled({
    ...{ what: 'there is no Redis for the tests', package_: 'redis-server' },
    find: () => program('redis-server') ?? program('valkey-server'),
  })
}

/** A key that holds something else than a stream. */
export const NO_STREAM = 'no-stream'

/** A write is acknowledged only while a replica keeps up: the setting that docs/sinks.md names. */
export const SETTINGS = [
  ...['--bind', '127.0.0.1', '--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'],
  ...['--repl-diskless-sync-delay', '0', '--min-replicas-to-write', '1', '--min-replicas-max-lag', '5'],
]

/** A server that is just writing its log anew does not listen to the signal: it is told again. */
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
 * All entries of a stream, by XRANGE of another client than Belfry's.
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
