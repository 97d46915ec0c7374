/** Shapes of answers about the whole store: its instances, jobs, statistics, freeze and doctor. */

import { z } from 'zod'
import type { Instance } from '../../core/instances/instance.js'
import { iso, time, whenBusy } from './fields.js'

export const instanceResource = z
  .strictObject({
    id: z.string(),
    live: z.boolean(),
    host: z.string(),
    pid: z.int(),
    app: z.string().exactOptional(),
    release: z.string().exactOptional(),
    zoneData: z.string(),
    clockSkewMs: z.int().exactOptional().meta({
      description: 'How far its clock was ahead of the store’s when it joined, minus the duration of the join.',
    }),
    jobs: z.array(z.string()),
    joinedAt: time,
    beatAt: time,
    expiresAt: time,
  })
  .meta({ id: 'Instance' })

export type InstanceResource = z.output<typeof instanceResource>

export function toInstanceResource(instance: Instance, now: number): InstanceResource {
  const { id, host, pid, app, release, zoneData, clockAt, jobs, joinedAt, beatAt, expiresAt } = instance
  return {
    ...{ id, live: expiresAt >= now, host, pid },
    ...(app === undefined ? {} : { app }),
    ...(release === undefined ? {} : { release }),
    zoneData,
    ...(clockAt === undefined ? {} : { clockSkewMs: Math.round(clockAt - joinedAt) }),
    ...{ jobs: jobs.map(({ name }) => name) },
    ...{ joinedAt: iso(joinedAt), beatAt: iso(beatAt), expiresAt: iso(expiresAt) },
  }
}

export const jobResource = z
  .strictObject({
    name: z.string(),
    exclusive: z
      .strictObject({
        name: z.string().exactOptional(),
        by: z
          .union([z.array(z.string()), z.enum(['code']).meta({ id: 'ExclusiveByCode' })])
          .exactOptional()
          .meta({ description: 'The fields of the payload that make the key, or `code` if a function makes it.' }),
        limit: z.int(),
        whenBusy: whenBusy.exactOptional(),
        checkOnEnqueue: z.boolean(),
      })
      .meta({ id: 'JobExclusivity' })
      .exactOptional()
      .meta({ description: 'The key and limit that keep its runs from overlapping.' }),
    instances: z.array(z.string()).meta({ description: 'The live instances that run it.' }),
  })
  .meta({ id: 'Job' })

export const freezeState = z
  .strictObject({ frozen: z.boolean(), at: time.exactOptional(), note: z.string().exactOptional() })
  .meta({ id: 'Freeze' })

const boundedCount = z
  .strictObject({
    count: z.int(),
    more: z.boolean().meta({ description: 'Whether there are more than that: counting stops at a bound.' }),
  })
  .meta({ id: 'BoundedCount' })

const used = z
  .strictObject({
    count: z.int(),
    more: z.boolean(),
    quota: z.int().exactOptional().meta({ description: 'How many there may be.' }),
  })
  .meta({ id: 'UsageCount' })

export const stats = z
  .strictObject({
    now: time,
    instances: z.strictObject({ live: z.int(), gone: z.int() }).meta({ id: 'InstanceCounts' }),
    freeze: freezeState,
    due: boundedCount.exactOptional().meta({
      description: 'Runs that could start now. Counts of all runs are absent for callers who do not see all runs.',
    }),
    ready: boundedCount.exactOptional(),
    waiting: boundedCount.exactOptional(),
    running: boundedCount.exactOptional(),
    usage: z
      .strictObject({ schedules: used, runs: used, locks: used })
      .meta({ id: 'Usage' })
      .exactOptional()
      .meta({ description: 'What there is below the prefix of the caller, if it has a prefix or a quota.' }),
  })
  .meta({ id: 'Stats' })

export const doctorReport = z
  .strictObject({
    ok: z.boolean().meta({ description: 'True when there are no findings.' }),
    checks: z.array(
      z
        .strictObject({
          name: z.string(),
          about: z.string().meta({ description: 'What the check saw.' }),
          findings: z.array(z.strictObject({ what: z.string(), fix: z.string() }).meta({ id: 'Finding' })),
        })
        .meta({ id: 'DoctorCheck' }),
    ),
  })
  .meta({ id: 'DoctorReport' })

export type JobResource = z.output<typeof jobResource>
export type FreezeState = z.output<typeof freezeState>
export type Stats = z.output<typeof stats>
export type DoctorReport = z.output<typeof doctorReport>
