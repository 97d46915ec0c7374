/** Lists instances and jobs. Every shard has all of them, so only the first is asked. */
import type { Instance, JobInfo } from '../../../core/instances/instance.js'
import { listOf, luaScript, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { toInstance } from './instance-codec.js'
import listSource from './list.lua'

const listScript = luaScript({
  name: 'instances/list',
  source: listSource,
  takes: {},
  gives: { texts: listOf(text) },
})

export async function listInstances(server: Server): Promise<Instance[]> {
  const { texts } = await server.call(listScript, 0, {})
  const instances = texts.map(toInstance).filter((each) => each !== undefined)
  return instances.sort((one, other) => one.joinedAt - other.joinedAt)
}

export async function listJobs(server: Server): Promise<JobInfo[]> {
  const jobs = await server.readTexts(0, ['HVALS', 'jobs'])
  return jobs.map((job) => JSON.parse(job) as JobInfo)
}
