/** Runs as they change: the newest first, then a line for each that is new or has moved on. */
import { type RunQuery, type RunSummary, ServiceError } from '../../client/index.js'
import { interruption } from '../terminal/interruption.js'
import { newsLine } from '../terminal/run-text.js'
import type { Desk } from './operate.js'

type Filters = Omit<RunQuery, 'cursor' | 'limit'>

export async function followRuns({ client, out }: Desk, filters: Filters, limit: number): Promise<void> {
  // Once it goes on it waits for a service that is gone; one that was never there is told at once.
  await client.runs.list({ ...filters, limit: 1 })
  const { signal, over } = interruption()
  const told = new Map<string, string>()
  let [endedBefore, isLost] = ['', false]
  const tell = (run: RunSummary) => {
    const mark = `${run.state} ${run.attempt}`
    const known = told.get(run.id)
    // A service that has started anew tells what ended before we came, too.
    if (known === mark || (known === undefined && hasEndedBy(run, endedBefore))) return
    told.delete(run.id)
    told.set(run.id, mark)
    if (told.size > MAX_TOLD) told.delete(told.keys().next().value ?? '')
    out.line(out.format === 'table' ? newsLine(run, out.style) : JSON.stringify(run))
  }
  const load = async () => {
    const { data } = await client.runs.list({ ...filters, limit: Math.min(limit, MAX_FIRST) })
    for (const { payload: _, result: __, ...run } of data.toReversed()) tell(run)
    if (endedBefore === '') endedBefore = newest(data.map(({ finishedAt = '' }) => finishedAt))
    if (isLost) out.note('it answers again')
    isLost = false
  }
  const onLost = () => {
    isLost = true
    out.note('the service does not answer any more: waiting for it')
  }
  for await (const event of client.events({ signal, onLost })) {
    if (event.type === 'ready') await load().catch(unlessGone)
    else if (event.type === 'reset') out.note('there was more than could be followed: some of it is not shown')
    else if (event.type === 'run' && matches(event.run, filters)) tell(event.run)
  }
  over()
}

/** Instants have one form, so that they sort as texts. */
function hasEndedBy({ finishedAt }: RunSummary, instant: string): boolean {
  return finishedAt !== undefined && finishedAt <= instant
}

/** A service that went away while it was asked is asked again when it is back. */
function unlessGone(error: unknown): void {
  if (!(error instanceof ServiceError) || error.code !== 'UNREACHABLE') throw error
}

function newest(instants: readonly string[]): string {
  return instants.toSorted().at(-1) ?? ''
}

const MAX_TOLD = 10_000
const MAX_FIRST = 1_000

function matches(run: RunSummary, { schedule, job, sink, key, state }: Filters): boolean {
  const states: readonly string[] | undefined = state === undefined ? undefined : [state].flat()
  return (
    (schedule === undefined || run.schedule === schedule) &&
    (job === undefined || run.job === job) &&
    (sink === undefined || run.to === sink) &&
    (key === undefined || run.key?.name === key) &&
    (states === undefined || states.includes(run.state))
  )
}
