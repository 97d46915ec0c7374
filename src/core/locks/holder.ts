/**
 * How a lease says who holds it. The holder of a lock is one text, which is unique for each acquisition:
 *
 *     nightly import on web-1 pid 4711 #3f2a9c41b7d0
 */
import { LIMITS } from '../defaults.js'
import { newMark } from '../runs/run-id.js'
import { cleanLine } from '../visible-text.js'
import type { Lease } from './lease.js'

export interface HolderParts {
  /** What the holder calls itself. */
  readonly as?: string | undefined
  readonly host: string
  readonly pid: number
}

const UNIQUE = / #[0-9a-f]{12}$/

/** A new holder of at most `most` characters. */
export function newHolder({ as, host, pid }: HolderParts, most: number = LIMITS.nameLength): string {
  const where = `${host} pid ${pid}`
  return uniqueHolder(as === undefined ? where : `${as} on ${where}`, most)
}

/** A name made unique, so that each acquisition has its own. */
export function uniqueHolder(name: string, most: number = LIMITS.nameLength): string {
  const unique = ` #${newMark()}`
  return `${cleanLine(name)
    .slice(0, most - unique.length)
    .trimEnd()}${unique}`
}

/** The holder without its host and process, for callers who may not see the instances. */
export function withoutPlace(holder: string): string {
  return holder.replace(/(?:^\S+| on \S+) pid \d+(?= #[0-9a-f]{12}$)/, (found) =>
    found.startsWith(' on ') ? '' : 'a process',
  )
}

/** A holder as people read it. */
export function holderName(holder: string): string {
  return holder.replace(UNIQUE, '')
}

/** `import on web-1 pid 4711, since 09:00:00Z, until 09:00:15Z unless it is renewed`. */
export function describeHolders(leases: readonly Pick<Lease, 'holder' | 'run' | 'acquiredAt' | 'expiresAt'>[]): string {
  const [first, ...others] = leases
  if (first === undefined) return 'another holder, which has released it since'
  const { holder, run, acquiredAt, expiresAt } = first
  const who = run === undefined ? (holder.startsWith('run:') ? 'a run' : holderName(holder)) : `run ${run}`
  const more = others.length === 0 ? '' : `, and by ${others.length} more`
  return `${who} since ${iso(acquiredAt)}, until ${iso(expiresAt)} unless it is renewed${more}`
}

function iso(instant: number): string {
  return new Date(instant).toISOString().replace('.000Z', 'Z')
}
