/**
 * Ids for what comes without one: UUIDs of version 7, which begin with the time. Those that are made together then stand
 * together in the store's indexes, where ids by chance alone would each change a page of their own.
 */
import { randomUUID } from 'node:crypto'
import { type Clock, systemClock } from './clock.js'

/** Where the version stands in a UUID. */
const VERSION_AT = 14

/** The last beginning that was made, and when: many ids are made within one millisecond. */
let [madeAt, beginning] = [Number.NaN, '']

export function newId(clock: Clock = systemClock): string {
  const now = Math.floor(clock.now())
  if (now !== madeAt) {
    const ms = now.toString(16).padStart(12, '0')
    madeAt = now
    beginning = `${ms.slice(0, 8)}-${ms.slice(8)}-7`
  }
  return beginning + randomUUID().slice(VERSION_AT + 1)
}
