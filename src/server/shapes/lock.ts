import { z } from 'zod'
import type { Lease } from '../../core/locks/lease.js'
import { shownHolder } from '../security/lock-holder.js'
import type { Visible } from '../security/visibility.js'
import { iso, time } from './fields.js'

export const leaseResource = z
  .strictObject({
    name: z.string(),
    holder: z.string().meta({
      description:
        'Who holds it: what the holder calls itself, its host and process, or the caller, with a mark of this acquisition.',
    }),
    token: z.int().meta({
      description:
        'Fencing token: grows with every acquisition of the name, so that other systems can refuse an older one.',
    }),
    acquiredAt: time,
    expiresAt: time,
    instance: z.string().exactOptional(),
    run: z
      .string()
      .exactOptional()
      .meta({ description: 'The run whose exclusive key it is, if the caller may see that run.' }),
    released: z.literal(true).exactOptional().meta({ description: 'Released before the end of its minimum hold.' }),
  })
  .meta({ id: 'Lease' })

export type LeaseResource = z.output<typeof leaseResource>

export const lockResource = z
  .strictObject({
    name: z.string(),
    holders: z.array(leaseResource).meta({ description: 'Empty when the lock is free.' }),
  })
  .meta({ id: 'Lock' })

export const lockReset = z.strictObject({ reset: z.int() }).meta({ id: 'LockReset' })

export type LockResource = z.output<typeof lockResource>

export function toLeaseResource(lease: Visible<Lease>): LeaseResource {
  const { name, holder, token, acquiredAt, expiresAt, instance, run, released } = lease
  return {
    ...{ name, holder: shownHolder(holder), token, acquiredAt: iso(acquiredAt), expiresAt: iso(expiresAt) },
    ...(instance === undefined ? {} : { instance }),
    ...(run === undefined ? {} : { run }),
    ...(released === undefined ? {} : { released }),
  }
}
