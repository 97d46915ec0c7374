/** Runs as they change: the newest first, then a line for each that is new or has moved on. */
import type { RunQuery, RunSummary } from '../../client/index.js'
import { interruption } from '../terminal/interruption.js'
import type { Desk } from './operate.js'
import { newsLine } from './run-words.js'

type Filters = Omit<RunQuery, 'cursor' | 'limit'>

export async function followRuns({ client, out }: Desk, filters: Filters, limit: number): Promise<void> {
  const { signal, over } = interruption()
  const told = new Map<string, string>()
  const tell = (run: RunSummary) => {
    const mark = `${run.state} ${run.attempt}`
    if (told.get(run.id) === mark) return
    told.delete(run.id)
    told.set(run.id, mark)
    if (told.size > MAX_TOLD) told.delete(told.keys().next().value ?? '')
    out.line(out.format === 'table' ? newsLine(run, out.style) : JSON.stringify(run))
  }
  const load = async () => {
    const { data } = await client.runs.list({ ...filters, limit: Math.min(limit, MAX_FIRST) })
    for (const { payload: _, result: __, ...run } of data.toReversed()) tell(run)
  }
  for await (const event of client.events({ signal })) {
    if (event.type === 'ready') await load()
    else if (event.type === 'reset') out.note('there was more than could be followed: some of it is not shown')
    else if (event.type === 'run' && matches(event.run, filters)) tell(event.run)
  }
  over()
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
