/**
 * A release whose answer was lost is repeated, and the repetition finds nothing to release: that the holder has nothing now
 * says nothing about whether it had something before.
 */
import { failure } from '../../../core/errors.js'
import type { Database, Row } from './database.js'
import { troubleOf } from './errors.js'

export interface Told {
  readonly rows: readonly Row[]
  /** An earlier try may have been carried out without its answer. */
  readonly isInDoubt: boolean
}

/** One statement that changes something, repeated where that is needed. */
export async function writeTold(db: Database, sql: string, values: readonly unknown[]): Promise<Told> {
  let isInDoubt = false
  const rows = await db.attempt(async () => {
    try {
      return await db.once(sql, values)
    } catch (error) {
      if (troubleOf(error) === 'broken') isInDoubt = true
      throw error
    }
  })
  return { rows, isInDoubt }
}

export function inDoubt(lock: string) {
  return failure(
    'STORE_UNREACHABLE',
    `the connection broke while the lock "${lock}" was released: it is free now, but the store no longer knows whether it was still held`,
  )
}
