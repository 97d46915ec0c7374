import type { InstanceInfo } from '../../../core/instances/instance.js'
import { everywhere } from '../cluster/shards.js'
import { listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './join.lua'

const joinScript = luaScript({
  name: 'instances/join',
  source,
  writes: true,
  takes: {
    instance: text,
    leaseMs: number,
    app: maybe(text),
    declarations: maybe(text),
    info: text,
    jobs: listOf(named({ name: text, text })),
  },
  gives: { now: number },
})

/** Joins in every shard, because each shard decides by the beats that it has received which instances are alive. */
export async function joinInstance(
  server: Server,
  info: InstanceInfo,
  leaseMs: number,
): Promise<{ readonly now: number }> {
  server.lease.heard(leaseMs)
  const { id, app, declarations } = info
  const jobs = info.jobs.map((job) => ({ name: job.name, text: JSON.stringify(job) }))
  const given = { instance: id, leaseMs, info: JSON.stringify(info), jobs, app, declarations }
  const joined = await everywhere(server, (shard) => server.call(joinScript, shard, given))
  for (const { now } of joined) server.time.heard(now)
  return { now: joined[0]?.now ?? 0 }
}
