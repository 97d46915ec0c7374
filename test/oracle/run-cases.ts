import { compareCase, type Library, type Outcome, place } from './compare.js'

export interface Plan {
  /** Expressions to compare; each gives ten ticks. */
  readonly expressions: number
  readonly zones: readonly string[]
  readonly seed: number
}

/**
 * Zone by zone: half of the expressions start anywhere, half near a clock change, each change of the zone in turn.
 * Gives way now and then, so that the test runner hears from its worker.
 */
export async function runCases(library: Library, { expressions, zones, seed }: Plan): Promise<Outcome> {
  const outcome: Outcome = { equal: 0, proven: 0, explained: 0, lost: 0, refused: 0 }
  let number = 0
  for (const [index, zone] of zones.entries()) {
    const at = place(zone)
    const last = Math.round(((index + 1) * expressions) / zones.length)
    for (; number < last; number += 1) {
      const near = number % 2 === 0 ? undefined : at.changes[(number >> 1) % Math.max(at.changes.length, 1)]
      compareCase(seed + number, at, near, library, outcome)
      if (number % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return outcome
}

/** Zones of every kind: common ones, and those whose clocks did something unusual. */
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
