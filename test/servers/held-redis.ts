import type { NodeRedis, NodeRedisCluster } from '../../src/stores/redis/index.js'
import { RECORD } from '../../src/stores/redis/schedules/record-ticks.js'
import { WRITE_SCHEDULES } from '../../src/stores/redis/schedules/schedule-changes.js'
import { type HeldWrite, replacing } from './held-write.js'

/** The scripts that write what was decided on something read before. */
const WRITES = new Set([RECORD, WRITE_SCHEDULES].flatMap(({ handTurned: { sha, text } }) => [sha, text]))

function isWrite([, script = '']: readonly string[]): boolean {
  return WRITES.has(script)
}

/** A client whose writes can be held back. */
export function heldClient(client: NodeRedis, held: HeldWrite): NodeRedis {
  return replacing(client, {
    // The connection outlives the test, and has its own listener.
    on: () => {},
    async sendCommand(args) {
      if (isWrite(args)) await held.pass()
      return client.sendCommand(args)
    },
  })
}

/** The same for a cluster. */
export function heldCluster(cluster: NodeRedisCluster, held: HeldWrite): NodeRedisCluster {
  return replacing(cluster, {
    async sendCommand(key, isReadonly, args) {
      if (isWrite(args)) await held.pass()
      return cluster.sendCommand(key, isReadonly, args)
    },
  })
}
