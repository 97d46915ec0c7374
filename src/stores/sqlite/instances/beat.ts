import type { BeatRequest, BeatResult } from '../../../core/instances/instance.js'
import { statement } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { idOf, type RunName, type RunRow } from '../runs/run-codec.js'
import { loadRun, takeOver } from '../runs/transitions.js'
import source from './beat.sql'
import { noteAlive } from './declarations.js'

type One = { instance: string }
type Living = { app: string | null; declarations: string | null }
type Attempt = RunName & { token: number; claim: number; cancel_requested: number }

const livingInstance = statement<One, Living>(source, 'livingInstance')
const settleClaims = statement<One & { claim: number }>(source, 'settleClaims')
const attemptsOf = statement<One, Attempt>(source, 'attemptsOf')

/**
 * Extends the instance's lease, and with it the keys of its runs. The beat lists the attempts that the instance runs. If the
 * list lacks a run that the store started for an answered claim, the reply never arrived: the run is given back.
 */
export function beatInstance(tx: Tx, request: BeatRequest): BeatResult {
  const { db, now } = tx
  const { instance, attempts, leaseMs, claimsSettled } = request
  const living = db.get(livingInstance, { instance })
  if (living === undefined) return { alive: false, lost: attempts.map(({ run }) => run), cancel: [], now }
  extendInstance(tx, instance, leaseMs)
  noteAlive(tx, living.app, living.declarations)
  db.run(settleClaims, { instance, claim: claimsSettled })
  const held = db.all(attemptsOf, { instance })
  const tokens = new Map(held.map((run) => [idOf(run), run.token]))
  const own = new Set(attempts.filter(({ run, token }) => tokens.get(run) === token).map(({ run }) => run))
  for (const attempt of held) {
    const run = attempt.claim <= claimsSettled && !own.has(idOf(attempt)) ? loadRun(db, attempt.id) : undefined
    if (run !== undefined) takeOver(tx, run, false)
  }
  const cancelled = held.filter((attempt) => attempt.cancel_requested === 1 && own.has(idOf(attempt)))
  return {
    alive: true,
    lost: attempts.filter(({ run }) => !own.has(run)).map(({ run }) => run),
    cancel: cancelled.map(idOf),
    now,
  }
}

const extendStatement = statement<One & { now: number; expiresAt: number }>(source, 'extendInstance')

export function extendInstance({ db, now }: Tx, instance: string, leaseMs: number): void {
  db.run(extendStatement, { instance, now, expiresAt: now + leaseMs })
}

const runningOf = statement<One & { limit: number }, RunRow>(source, 'runningOf')
/** SQLite reads a negative limit as none. */
const NO_LIMIT = -1

export function runningRuns({ db }: Snapshot, instance: string, limit = NO_LIMIT): readonly RunRow[] {
  return db.all(runningOf, { instance, limit })
}
