import { decideRemove } from '../../../core/schedules/declare.js'
import type { RemoveResult } from '../../../core/store.js'
import { inShards, shardOf } from '../cluster/shards.js'
import type { Server } from '../connection/server.js'
import { change, type Decide, type ScheduleChange } from './change.js'

export function removeSchedules(server: Server, ids: readonly string[], ifVersion?: number): Promise<RemoveResult[]> {
  return inShards(
    ids,
    (id) => shardOf(id, server.shards),
    (shard, own) => change(server, shard, [...new Set(own)], decideRemovals(own, ifVersion)),
  )
}

function decideRemovals(ids: readonly string[], ifVersion: number | undefined): Decide<RemoveResult[]> {
  return (found, now) => {
    const left = new Map(found.map((each) => [each.id, each]))
    const changes: ScheduleChange[] = []
    const results = ids.map((id): RemoveResult => {
      const each = left.get(id)
      if (each?.schedule === undefined) return 'missing'
      if (ifVersion !== undefined && ifVersion !== each.schedule.version) return 'conflict'
      left.delete(id)
      const takeBack = decideRemove(each.schedule, each.unclaimed, now)
      changes.push({ found: each, schedule: undefined, place: 0, takeBack })
      return 'removed'
    })
    return { changes, result: () => results }
  }
}
