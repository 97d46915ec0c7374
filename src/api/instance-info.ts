import { hostname } from 'node:os'
import type { InstanceInfo } from '../core/instances/instance.js'
import type { ParsedOptions } from './belfry-options.js'
import { type JobCatalogue, jobInfo } from './jobs/job-catalogue.js'

/** How an instance appears in lists, and which jobs and sinks it serves. `declarations`: the hash of its schedules. */
export function instanceInfo(
  { app, release, roles, clock }: ParsedOptions,
  { runnable, sinks }: JobCatalogue,
  declarations: string | undefined,
): Omit<InstanceInfo, 'id'> {
  const isWorker = roles.includes('run')
  const served = isWorker ? sinks.infos() : []
  return {
    host: hostname(),
    pid: process.pid,
    zoneData: process.versions.tz ?? 'unknown',
    clockAt: Math.round(clock.now()),
    jobs: isWorker ? [...runnable.values()].map(jobInfo) : [],
    ...(served.length > 0 ? { sinks: served } : {}),
    ...(app === undefined ? {} : { app }),
    ...(release === undefined ? {} : { release }),
    ...(declarations === undefined ? {} : { declarations }),
  }
}
