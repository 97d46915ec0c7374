import type { NodeRedis, NodeRedisCluster } from '../../src/stores/redis/index.js'
import { recordTicksScript } from '../../src/stores/redis/schedules/advance.js'
import { writeSchedulesScript } from '../../src/stores/redis/schedules/change.js'
import { type InterruptedWrite, withMethods } from './interrupted-write.js'

/** Scripts that write a decision made from an earlier read. */
const WRITES = new Set(
  [recordTicksScript, writeSchedulesScript].flatMap(({ composed }) => [
    composed.handTurned.sha,
    composed.handTurned.text,
  ]),
)

function isWrite([, script = '']: readonly string[]): boolean {
  return WRITES.has(script)
}

/** A client whose writes wait for `InterruptedWrite`. */
export function interruptedClient(client: NodeRedis, write: InterruptedWrite): NodeRedis {
  return withMethods(client, {
    // Tests share the connection, which has a listener already.
    on: () => {},
    async sendCommand(args) {
      if (isWrite(args)) await write.beforeWrite()
      return client.sendCommand(args)
    },
  })
}

/** A cluster client whose writes wait for `InterruptedWrite`. */
export function interruptedCluster(cluster: NodeRedisCluster, write: InterruptedWrite): NodeRedisCluster {
  return withMethods(cluster, {
    async sendCommand(key, isReadonly, args) {
      if (isWrite(args)) await write.beforeWrite()
      return cluster.sendCommand(key, isReadonly, args)
    },
  })
}
