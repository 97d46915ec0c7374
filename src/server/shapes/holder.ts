import { z } from 'zod'
import type { Instance } from '../../core/instance.js'
import type { Lease } from '../../core/lease.js'
import { shownHolder } from '../security/lock-holder.js'
import { iso, time } from './fields.js'

export const leaseResource = z
  .strictObject({
    name: z.string(),
    holder: z.string().meta({ description: 'Names the acquisition.' }),
    token: z.int().meta({ description: 'Grows with every acquisition of the name: systems can refuse an older one.' }),
    acquiredAt: time,
    expiresAt: time,
    instance: z.string().exactOptional(),
    run: z.string().exactOptional().meta({ description: 'The run whose exclusive key it is.' }),
    released: z.literal(true).exactOptional().meta({ description: 'Given back before its minimum hold was over.' }),
  })
  .meta({ id: 'Lease' })

export type LeaseResource = z.output<typeof leaseResource>

export function toLeaseResource(lease: Lease): LeaseResource {
  const { name, holder, token, acquiredAt, expiresAt, instance, run, released } = lease
  return {
    ...{ name, holder: shownHolder(holder), token, acquiredAt: iso(acquiredAt), expiresAt: iso(expiresAt) },
    ...(instance === undefined ? {} : { instance }),
    ...(run === undefined ? {} : { run }),
    ...(released === undefined ? {} : { released }),
  }
}

export const instanceResource = z
  .strictObject({
    id: z.string(),
    live: z.boolean(),
    host: z.string(),
    pid: z.int(),
    app: z.string().exactOptional(),
    release: z.string().exactOptional(),
    zoneData: z.string(),
    clockSkewMs: z
      .int()
      .exactOptional()
      .meta({ description: 'How far its own clock was ahead of the store’s when it joined, less the time that took.' }),
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
