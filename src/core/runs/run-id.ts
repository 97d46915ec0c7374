/**
 * Ids of runs: the number that the store gave the run, and a random mark, as in `1041-9f3a2c41b7d0`.
 *
 * Numbers are counted, so they say which of two runs is older. A store that has lost its last writes, by a restored backup
 * or a failover, counts on from an earlier number, with any clock. The mark makes the ids differ all the same: an id
 * names one run for ever.
 */
import { randomUUID } from 'node:crypto'

/** 48 random bits. */
const MARK_DIGITS = 12

const RUN_ID = /^([1-9]\d{0,15})-([0-9a-f]{12})$/

export interface RunName {
  readonly number: number
  /** Hexadecimal digits. */
  readonly mark: string
}

/** The end of a UUID is random. */
export function newMark(): string {
  return randomUUID().slice(-MARK_DIGITS)
}

export function runId(number: number | string, mark: string): string {
  return `${number}-${mark}`
}

/** Undefined for a text that is no id of a run. */
export function readRunId(id: string): RunName | undefined {
  const [, number, mark] = RUN_ID.exec(id) ?? []
  return number === undefined || mark === undefined ? undefined : { number: Number(number), mark }
}

/** The number in an id, where a token tells the run's attempts apart; 0, which no run has, for any other text. */
export function runNumber(id: string): number {
  const number = Number(id.slice(0, Math.max(id.indexOf('-'), 0)))
  return Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** Where a list of runs goes on: behind an id, or behind a number alone. 0, before all runs, for any other text. */
export function numberAfter(cursor: string): number {
  return Number(/^([1-9]\d{0,15})(?:-[0-9a-f]{12})?$/.exec(cursor)?.[1] ?? 0)
}
