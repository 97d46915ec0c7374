/** Giving locks back: one, with a hand-off to its next waiter, or many that nothing waits for. */
import { failure } from '../../../core/errors.js'
import type { ReleaseRequest } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import { boolean, changes, integer, json, milliseconds, sqlFunction, text, texts } from '../schema/sql-function.js'
import type { Handed } from './lease-codec.js'
import source from './release.sql'

const releaseOne = sqlFunction({
  name: 'release_lock',
  source,
  takes: { lockName: text, holderId: text, minHoldMs: milliseconds, here: texts, channel: text },
  gives: { had: boolean, handed: json<readonly Handed[] | null>(), hints: changes },
})

export interface Released {
  readonly had: boolean
  /** An earlier try of the same release may have been carried out without its answer. */
  readonly isInDoubt: boolean
  /** To waiters in this process. */
  readonly handed: readonly Handed[]
}

/** `here` are the holders that wait for the name in this process. */
export async function releaseLock(
  db: Database,
  { name, holder, minHoldMs = 0 }: ReleaseRequest,
  here: readonly string[],
): Promise<Released> {
  const values = releaseOne.values({ lockName: name, holderId: holder, minHoldMs, here, channel: db.channel ?? '' })
  const { rows, isInDoubt } = await db.writeReportingDoubt(releaseOne.sql, values)
  const { had, handed, hints } = releaseOne.read(rows[0] ?? [])
  db.announce(hints)
  return { had, isInDoubt, handed: handed ?? [] }
}

const releaseMany = sqlFunction({
  name: 'release_locks',
  source,
  takes: { names: texts, holders: texts },
  gives: { place: integer },
})

/** What became of a release among many. */
export type Freed = 'freed' | 'in doubt' | 'not freed'

/** Gives those back that nothing waits for, in one transaction. What is not freed is to be released by itself. */
export async function releaseUnwaited(db: Database, requests: readonly ReleaseRequest[]): Promise<Freed[]> {
  const values = releaseMany.values({
    names: requests.map(({ name }) => name),
    holders: requests.map(({ holder }) => holder),
  })
  const { rows, isInDoubt } = await db.writeReportingDoubt(releaseMany.sql, values)
  const results = requests.map((): Freed => (isInDoubt ? 'in doubt' : 'not freed'))
  for (const { place } of rows.map(releaseMany.read)) results[place - 1] = 'freed'
  return results
}

export function inDoubt(lock: string) {
  return failure(
    'STORE_UNREACHABLE',
    `the connection broke while the lock "${lock}" was released: it is free now, but the store no longer knows whether it was still held`,
  )
}
