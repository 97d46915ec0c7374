import type { InstanceInfo } from '../../../core/instances/instance.js'
import { statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import type { Steps } from '../connection/write-queue.js'
import { extendInstance } from './beat.js'
import { noteAlive } from './declarations.js'
import source from './join.sql'
import { forget } from './leave.js'

type Join = {
  instance: string
  info: string
  app: string | null
  declarations: string | null
  now: number
  expiresAt: number
}
const isDead = statement<{ instance: string }, { dead: number }>(source, 'isDead')
const joinStatement = statement<Join>(source, 'join')
const noteJob = statement<{ name: string; info: string }>(source, 'noteJob')

/** A live instance that joins again only extends its lease. One that was declared dead starts over. */
export function* joinInstance(tx: Tx, info: InstanceInfo, leaseMs: number): Steps<{ readonly now: number }> {
  const { db, now } = tx
  const { id: instance, app = null, declarations = null } = info
  const known = db.get(isDead, { instance })
  if (known?.dead === 0) extendInstance(tx, instance, leaseMs)
  else {
    if (known !== undefined) yield* forget(tx, instance, true)
    db.run(joinStatement, { instance, info: JSON.stringify(info), app, declarations, now, expiresAt: now + leaseMs })
  }
  for (const job of info.jobs) db.run(noteJob, { name: job.name, info: JSON.stringify(job) })
  noteAlive(tx, app, declarations)
  return { now }
}
