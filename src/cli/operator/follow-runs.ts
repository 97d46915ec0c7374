/** `belfry runs --follow`: the newest runs, then a line for each new or changed run. */
import { type RunQuery, type RunSummary, ServiceError } from '../../client/index.js'
import { interruption } from '../terminal/interruption.js'
import { changeLine } from '../terminal/run-text.js'
import type { CommandContext } from './with-client.js'

type Filters = Omit<RunQuery, 'cursor' | 'limit'>

export async function followRuns({ client, out }: CommandContext, filters: Filters, limit: number): Promise<void> {
  // Fails at once if the service is unreachable at the start. In a later outage the command waits for the service.
  await client.runs.list({ ...filters, limit: 1 })
  const { signal, release } = interruption()
  const shown = new Map<string, string>()
  let [endedBefore, isLost] = ['', false]
  const show = (run: RunSummary) => {
    const version = `${run.state} ${run.attempt}`
    const known = shown.get(run.id)
    // A restarted service also sends runs that had ended before this command began.
    if (known === version || (known === undefined && hasEndedBy(run, endedBefore))) return
    shown.delete(run.id)
    shown.set(run.id, version)
    if (shown.size > MAX_REMEMBERED) shown.delete(shown.keys().next().value ?? '')
    out.line(out.format === 'table' ? changeLine(run, out.style) : JSON.stringify(run))
  }
  const load = async () => {
    const { data } = await client.runs.list({ ...filters, limit: Math.min(limit, MAX_FIRST) })
    for (const { payload: _, result: __, ...run } of data.toReversed()) show(run)
    if (endedBefore === '') endedBefore = newest(data.map(({ finishedAt = '' }) => finishedAt))
    if (isLost) out.note('the service answers again')
    isLost = false
  }
  const onLost = () => {
    isLost = true
    out.note('the service is unreachable: waiting for it')
  }
  for await (const event of client.events({ signal, onLost })) {
    if (event.type === 'ready') await load().catch(ignoreOutage)
    else if (event.type === 'reset') out.note('too many changes: some are not shown')
    else if (event.type === 'run' && matches(event.run, filters)) show(event.run)
  }
  release()
}

/** Compares instants as text: all have the same format. */
function hasEndedBy({ finishedAt }: RunSummary, instant: string): boolean {
  return finishedAt !== undefined && finishedAt <= instant
}

/** After an outage the next `ready` event loads again. */
function ignoreOutage(error: unknown): void {
  const isOutage = error instanceof ServiceError && (error.code === 'UNREACHABLE' || error.status >= 502)
  if (!isOutage) throw error
}

function newest(instants: readonly string[]): string {
  return instants.toSorted().at(-1) ?? ''
}

const MAX_REMEMBERED = 10_000
const MAX_FIRST = 1_000

function matches(run: RunSummary, { schedule, job, to, key, state }: Filters): boolean {
  const states: readonly string[] | undefined = state === undefined ? undefined : [state].flat()
  return (
    (schedule === undefined || run.schedule === schedule) &&
    (job === undefined || run.job === job) &&
    (to === undefined || run.to === to) &&
    (key === undefined || run.key?.name === key) &&
    (states === undefined || states.includes(run.state))
  )
}
