/**
 * Declares instances dead whose beats stopped, and takes over what they ran. Locks expire without a write, so their waiters are
 * served here too.
 */
import type { RescueResult } from '../../../core/store.js'
import type { SqliteFile } from '../connection/file.js'
import { change, type Nothing, rows } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { runningRuns } from '../instances/beat.js'
import { forgetInstance } from '../instances/leave.js'
import source from './rescue.sql'
import { takeOver } from './transitions.js'

/** How many runs one transaction takes over, and for how many names it serves the waiters. */
const STEP = 200

export async function rescueRuns(file: SqliteFile, limit: number): Promise<RescueResult> {
  let [rescued, lost] = [0, 0]
  const gone = await file.read((snapshot) => expiredInstances(snapshot, {}))
  for (const { id } of gone) {
    for (let isLeft = true; isLeft && rescued + lost < limit; ) {
      const room = Math.min(limit - rescued - lost, STEP)
      const step = await file.write((tx) => rescueInstance(tx, id, room))
      rescued += step.rescued
      lost += step.lost
      isLeft = step.rescued + step.lost >= room
    }
  }
  await serveWaiters(file, namesWithWaiters, (tx) => tx.freedNames)
  await serveWaiters(file, schedulesWithWaiters, (tx) => tx.freedSchedules)
  return { rescued, lost }
}

const expiredInstances = rows<Nothing, { id: string }>(source, 'expiredInstances')
const declareDead = change<{ instance: string }>(source, 'declareDead')

function rescueInstance(tx: Tx, instance: string, limit: number): RescueResult {
  if (declareDead(tx, { instance }) === 0) return { rescued: 0, lost: 0 }
  const outcomes = runningRuns(tx, instance, limit).map((run) => takeOver(tx, run, true))
  if (outcomes.length < limit) forgetInstance(tx, { instance })
  const lost = outcomes.filter((outcome) => outcome === 'lost').length
  return { rescued: outcomes.length - lost, lost }
}

type Range = { after: string; limit: number }
const namesWithWaiters = rows<Range, { name: string }>(source, 'namesWithWaiters')
const schedulesWithWaiters = rows<Range, { name: string }>(source, 'schedulesWithWaiters')

/** Marks everything that is waited for as freed, in steps: `passOn` serves those waiters that need not wait any longer. */
async function serveWaiters(
  file: SqliteFile,
  waitedFor: typeof namesWithWaiters,
  freed: (tx: Tx) => Set<string>,
): Promise<void> {
  for (let after = ''; ; ) {
    const range: Range = { after, limit: STEP }
    const found = await file.read((snapshot) => waitedFor(snapshot, range))
    if (found.length === 0) return
    await file.write((tx) => {
      for (const { name } of found) freed(tx).add(name)
    })
    after = found.at(-1)?.name ?? ''
  }
}
