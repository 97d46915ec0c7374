/** An instance of the demo, in this process or a child. It reports the events of its runs. */
import { type Belfry, createBelfry } from '../../belfry.js'
import { silentLogger } from '../../core/logger.js'
import { ownerOf } from '../../core/runs/run.js'
import type { ClaimedRun } from '../../core/store.js'
import { log } from '../../sinks/log.js'
import { sqlite } from '../../stores/sqlite/index.js'
import { quietSqlite } from '../settings/quiet-sqlite.js'
import { declareDemo, LEASE } from './demo.js'
import type { RunNote } from './run-lines.js'

export async function startReplica(path: string, helloAt: number, tell: (note: RunNote) => void): Promise<Belfry> {
  quietSqlite()
  const belfry = createBelfry({
    store: sqlite({ path }),
    app: 'belfry-dev',
    lease: LEASE,
    poll: '250ms',
    stopGrace: '500ms',
    // The line of the run shows the event.
    sinks: { log: log({ logger: silentLogger }) },
  })
  declareDemo(belfry, helloAt)
  const note = (kind: RunNote['kind'], run: ClaimedRun): RunNote => ({
    kind,
    at: Date.now(),
    schedule: ownerOf(run),
    ...('sink' in run.target ? { event: JSON.stringify(run.payload) } : {}),
    tick: run.tick ?? run.createdAt,
    attempt: run.attempt,
    takeovers: run.takeovers,
    exclusive: run.key !== undefined,
    lateMs: run.startedAt - run.readyAt,
  })
  belfry.on('run:started', ({ run }) => tell(note('started', run)))
  belfry.on('run:succeeded', ({ run, durationMs }) => tell({ ...note('succeeded', run), durationMs }))
  belfry.on('run:failed', ({ run, error }) => tell({ ...note('failed', run), error: error.message }))
  belfry.on('run:retrying', ({ run, error, delayMs }) =>
    tell({ ...note('retrying', run), error: error.message, delayMs }),
  )
  belfry.on('run:released', ({ run }) => tell(note('released', run)))
  belfry.on('run:stale', ({ run }) => tell(note('stale', run)))
  await belfry.start()
  return belfry
}
