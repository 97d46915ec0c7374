import type { BeatRequest, BeatResult } from '../../../core/instances/instance.js'
import { row, rows } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { idOf, type RunName, type RunRow } from '../runs/run-codec.js'
import { runById, takeOver } from '../runs/transitions.js'
import source from './beat.sql'
import { noteAlive } from './declarations.js'

type Attempt = RunName & { token: number; claim: number; cancel_requested: number }
const attemptsOf = rows<{ instance: string }, Attempt>(source, 'attemptsOf')
const lastBeat = row<{ instance: string }, { beat_at: number }>(source, 'lastBeat')

/**
 * Extends the instance's lease, and with it the keys of its runs. The beat lists the attempts that the instance runs. If the
 * list lacks a run that the store started for an answered claim, the reply never arrived: the run is given back.
 */
export function beatInstance(tx: Tx, { instance, attempts, leaseMs, claimsSettled }: BeatRequest): BeatResult {
  const { now } = tx
  const { beat_at: lastBeatAt = now } = lastBeat(tx, { instance }) ?? {}
  if (!extendInstance(tx, instance, leaseMs, claimsSettled)) {
    return { alive: false, lost: attempts.map(({ run }) => run), cancel: [], now }
  }
  const held = attemptsOf(tx, { instance })
  const tokens = new Map(held.map((attempt) => [idOf(attempt), attempt.token]))
  const own = new Set(attempts.filter(({ run, token }) => tokens.get(run) === token).map(({ run }) => run))
  for (const attempt of held) {
    const run = attempt.claim <= claimsSettled && !own.has(idOf(attempt)) ? runById(tx, attempt) : undefined
    if (run !== undefined) takeOver(tx, run, false)
  }
  const cancelled = held.filter((attempt) => attempt.cancel_requested === 1 && own.has(idOf(attempt)))
  return {
    alive: true,
    lost: attempts.filter(({ run }) => !own.has(run)).map(({ run }) => run),
    cancel: cancelled.map(idOf),
    lastBeatAt,
    now,
  }
}

type Extension = { instance: string; expiresAt: number; claimsSettled: number }
type Extended = { app: string | null; declarations: string | null }
const writeExpiry = row<Extension, Extended>(source, 'extendInstance')

/** False when the instance is not known, or was declared dead. */
export function extendInstance(tx: Tx, instance: string, leaseMs: number, claimsSettled: number): boolean {
  const extended = writeExpiry(tx, { instance, expiresAt: tx.now + leaseMs, claimsSettled })
  if (extended === undefined) return false
  noteAlive(tx, extended.app, extended.declarations)
  return true
}

const runningOf = rows<{ instance: string; limit: number }, RunRow>(source, 'runningOf')
/** SQLite reads a negative limit as none. */
const NO_LIMIT = -1

export function runningRuns(tx: Snapshot, instance: string, limit = NO_LIMIT): readonly RunRow[] {
  return runningOf(tx, { instance, limit })
}
