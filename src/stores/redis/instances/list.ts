/** Instances and jobs. All shards know them; the first is asked. */
import type { Instance, JobInfo } from '../../../core/instances/instance.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { listOf, text } from '../connection/shapes.js'
import { toInstance } from './instance-codec.js'
import jobsSource from './jobs.lua'
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

const jobsScript = luaScript({
  name: 'instances/jobs',
  source: jobsSource,
  takes: {},
  gives: { jobs: listOf(text) },
})

export async function listJobs(server: Server): Promise<JobInfo[]> {
  const { jobs } = await server.call(jobsScript, 0, {})
  return jobs.map((job) => JSON.parse(job) as JobInfo)
}
