import { compareCase, type Library, type Outcome, zoneClock } from './compare.js'

export interface Plan {
  /** The number of expressions to compare; each has ten ticks. */
  readonly expressions: number
  readonly zones: readonly string[]
  readonly seed: number
}

/**
 * Runs zone by zone: half of the expressions start anywhere, half near one of the zone's clock changes in turn. Yields
 * to the event loop regularly, so that the test runner hears from its worker.
 */
export async function runCases(library: Library, { expressions, zones, seed }: Plan): Promise<Outcome> {
  const outcome: Outcome = { equal: 0, proven: 0, explained: 0, lost: 0, refused: 0 }
  let number = 0
  for (const [index, zone] of zones.entries()) {
    const at = zoneClock(zone)
    const last = Math.round(((index + 1) * expressions) / zones.length)
    for (; number < last; number += 1) {
      const near = number % 2 === 0 ? undefined : at.changes[(number >> 1) % Math.max(at.changes.length, 1)]
      compareCase(seed + number, at, near, library, outcome)
      if (number % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return outcome
}

/** Common zones, and zones with unusual clock changes. */
export const SOME_ZONES = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'Europe/Dublin',
  'Europe/Moscow',
  'Europe/Istanbul',
  'Europe/Lisbon',
  'America/New_York',
  'America/Los_Angeles',
  'America/St_Johns',
  'America/Sao_Paulo',
  'America/Havana',
  'America/Caracas',
  'America/Santiago',
  'America/Nuuk',
  'America/Scoresbysund',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Africa/Monrovia',
  'Africa/Juba',
  'Asia/Beirut',
  'Asia/Gaza',
  'Asia/Tehran',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Asia/Pyongyang',
  'Asia/Tokyo',
  'Asia/Amman',
  'Australia/Lord_Howe',
  'Australia/Sydney',
  'Australia/Eucla',
  'Pacific/Apia',
  'Pacific/Auckland',
  'Pacific/Chatham',
  'Pacific/Kwajalein',
  'Pacific/Norfolk',
  'Antarctica/Troll',
  'Antarctica/Casey',
] as const
