/** Instances and jobs. All shards know them; the first is asked. */
import type { Instance, InstanceInfo, JobInfo } from '../../../core/instances/instance.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { listOf, text } from '../connection/shapes.js'
import jobsSource from './jobs.lua'
import listSource from './list.lua'

const listScript = luaScript({
  name: 'instances/list',
  source: listSource,
  takes: {},
  gives: { texts: listOf(text) },
})

/** The first line of an instance's text: see instance-codec.lua. */
interface Standing {
  readonly expiresAt: number
  readonly joinedAt: number
  readonly beatAt: number
  readonly dead?: true
}

export async function listInstances(server: Server): Promise<Instance[]> {
  const { texts } = await server.call(listScript, 0, {})
  const instances = texts.flatMap((stored): Instance[] => {
    const [standing = '{}', info = '{}'] = stored.split('\n')
    const { expiresAt, joinedAt, beatAt, dead } = JSON.parse(standing) as Standing
    return dead ? [] : [{ ...(JSON.parse(info) as InstanceInfo), joinedAt, beatAt, expiresAt }]
  })
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
