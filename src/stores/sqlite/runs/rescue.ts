/**
 * Declares instances dead whose beats stopped, and takes over what they ran. Locks expire without a write, so their waiters are
 * served here too. Names and schedules that need no repair are only read.
 */
import type { RescueResult } from '../../../core/store.js'
import type { SqliteFile } from '../connection/file.js'
import { type Statement, statement } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { runningRuns } from '../instances/beat.js'
import { forgetInstance } from '../instances/leave.js'
import { isBusy } from '../locks/acquire.js'
import { firstOfSchedule, firstWaiter, oldestDue, oldestWaiting } from '../locks/pass-on.js'
import source from './rescue.sql'
import { keyLimit } from './run-codec.js'
import { takeOver } from './transitions.js'

/** How many runs one transaction takes over, and how many names one read passes over. */
const STEP = 200

export async function rescueRuns(file: SqliteFile, limit: number): Promise<RescueResult> {
  let [rescued, lost] = [0, 0]
  const gone = await file.read(({ db, now }) => db.all(expiredInstances, { now }))
  for (const { id } of gone) {
    for (let isLeft = true; isLeft && rescued + lost < limit; ) {
      const room = Math.min(limit - rescued - lost, STEP)
      const step = await file.write((tx) => rescueInstance(tx, id, room))
      rescued += step.rescued
      lost += step.lost
      isLeft = step.rescued + step.lost >= room
    }
  }
  await serveWaiters(file, namesWithWaiters, isServable, (tx) => tx.freedNames)
  await serveWaiters(file, schedulesWithWaiters, hasNext, (tx) => tx.freedSchedules)
  return { rescued, lost }
}

const expiredInstances = statement<{ now: number }, { id: string }>(source, 'expiredInstances')
const declareDead = statement<{ instance: string; now: number }>(source, 'declareDead')

function rescueInstance(tx: Tx, instance: string, limit: number): RescueResult {
  if (tx.db.run(declareDead, { instance, now: tx.now }) === 0) return { rescued: 0, lost: 0 }
  const outcomes = runningRuns(tx, instance, limit).map((run) => takeOver(tx, run, true))
  if (outcomes.length < limit) forgetInstance(tx, instance)
  const lost = outcomes.filter((outcome) => outcome === 'lost').length
  return { rescued: outcomes.length - lost, lost }
}

type Range = { after: string; limit: number }
const namesWithWaiters = statement<Range, { name: string }>(source, 'namesWithWaiters')
const schedulesWithWaiters = statement<Range, { name: string }>(source, 'schedulesWithWaiters')

/** Marks what could serve a waiter as freed: `passOn` then serves it. */
async function serveWaiters(
  file: SqliteFile,
  select: Statement<Range, { name: string }>,
  canServe: (snapshot: Snapshot, name: string) => boolean,
  freed: (tx: Tx) => Set<string>,
): Promise<void> {
  for (let range: Range | undefined = { after: '', limit: STEP }; range !== undefined; ) {
    const from: Range = range
    const { names, servable } = await file.read((snapshot) => {
      const waited = snapshot.db.all(select, from).map(({ name }) => name)
      return { names: waited, servable: waited.filter((name) => canServe(snapshot, name)) }
    })
    if (servable.length > 0) {
      await file.write((tx) => {
        for (const name of servable) freed(tx).add(name)
      })
    }
    const last: string | undefined = names.at(-1)
    range = last === undefined || names.length < STEP ? undefined : { after: last, limit: STEP }
    await file.breathe()
  }
}

function isServable(snapshot: Snapshot, name: string): boolean {
  const waiter = firstWaiter(snapshot, name)
  if (waiter !== undefined && (waiter.until <= snapshot.now || !isBusy(snapshot, name, waiter.permits))) return true
  const run = oldestWaiting(snapshot, name)
  return run !== undefined && oldestDue(snapshot, name) >= run.id && !isBusy(snapshot, name, keyLimit(run))
}

function hasNext(snapshot: Snapshot, schedule: string): boolean {
  return firstOfSchedule(snapshot, schedule) !== undefined
}
