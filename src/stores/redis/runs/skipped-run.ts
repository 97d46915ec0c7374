/** The runs that a script has skipped, as `transitions.lua` returns them. */
import type { SkipReason } from '../../../core/policies.js'
import type { Origin } from '../../../core/runs/run.js'
import { targetOf } from '../../../core/runs/stored-text.js'
import type { SkippedRun } from '../../../core/store.js'
import { listOf, maybe, named, number, oneOf, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { getRun } from './list.js'
import { isTicket, runId } from './run-codec.js'

export const skippedRuns = listOf(
  named({
    ...{ run: text, target: text, origin: oneOf<Origin | 'ticket'>(), schedule: maybe(text), tick: maybe(number) },
    reason: oneOf<SkipReason>(),
  }),
)

interface ToldSkip extends Omit<SkippedRun, 'id' | 'target' | 'origin'> {
  readonly run: string
  readonly target: string
  readonly origin: Origin | 'ticket'
}

/** A ticket has few fields of its run, so the run is read from its own shard. */
export async function toSkippedRuns(server: Server, shard: number, told: readonly ToldSkip[]): Promise<SkippedRun[]> {
  const runs = await Promise.all(
    told.map(async ({ run: number, target, origin, ...skip }): Promise<SkippedRun | undefined> => {
      const id = runId(shard, number)
      if (!isTicket(number) && origin !== 'ticket') return { ...skip, id, target: targetOf(target, null), origin }
      const run = await getRun(server, id)
      if (run === undefined) return undefined
      const { schedule, tick } = run
      return {
        ...{ id, target: targetOf(target, null), origin: run.origin, reason: skip.reason },
        ...(schedule === undefined ? {} : { schedule }),
        ...(tick === undefined ? {} : { tick }),
      }
    }),
  )
  return runs.filter((run) => run !== undefined)
}
