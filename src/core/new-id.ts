/**
 * Ids for what comes without one: UUIDs of version 7, which begin with the time. Those that are made together then stand
 * together in the store's indexes, where ids by chance alone would each change a page of their own.
 */
import { randomUUID } from 'node:crypto'
import { type Clock, systemClock } from './clock.js'

/** Where the version stands in a UUID. */
const VERSION_AT = 14

export function newId(clock: Clock = systemClock): string {
  const ms = Math.floor(clock.now()).toString(16).padStart(12, '0')
  return `${ms.slice(0, 8)}-${ms.slice(8)}-7${randomUUID().slice(VERSION_AT + 1)}`
}
