import type { InstanceInfo } from '../../../core/instances/instance.js'
import { change } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import type { Steps } from '../connection/write-queue.js'
import { extendInstance } from './beat.js'
import { noteAlive } from './declarations.js'
import source from './join.sql'
import { leaveInstance } from './leave.js'

type Join = {
  instance: string
  info: string
  app: string | null
  declarations: string | null
  expiresAt: number
}
const insertInstance = change<Join>(source, 'join')
const noteJob = change<{ name: string; info: string }>(source, 'noteJob')

/** A live instance that joins again only extends its lease. One that was declared dead starts over. */
export function* joinInstance(tx: Tx, info: InstanceInfo, leaseMs: number): Steps<{ readonly now: number }> {
  const { id: instance, app = null, declarations = null } = info
  if (!extendInstance(tx, instance, leaseMs, -1)) {
    yield* leaveInstance(tx, instance, true)
    const expiresAt = tx.now + leaseMs
    insertInstance(tx, { instance, info: JSON.stringify(info), app, declarations, expiresAt })
  }
  for (const job of info.jobs) noteJob(tx, { name: job.name, info: JSON.stringify(job) })
  noteAlive(tx, app, declarations)
  return { now: tx.now }
}
