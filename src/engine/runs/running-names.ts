import { isThreaded, type JobDefinition } from '../definitions.js'
import type { Attempt } from './attempt.js'

const MAX_NAMES = 5

/** Names the first of `count` attempts on the main thread by job or sink and run: `resize 1234, resize 1235 and 8 more`. */
export function runningNames(
  attempts: ReadonlyMap<string, Attempt>,
  jobs: ReadonlyMap<string, JobDefinition>,
  count: number,
): string {
  const names: string[] = []
  for (const { run } of attempts.values()) {
    if (names.length === MAX_NAMES) break
    const { id, target } = run
    const job = 'job' in target ? jobs.get(target.job) : undefined
    if (job === undefined || !isThreaded(job)) names.push(`${'job' in target ? target.job : target.sink} ${id}`)
  }
  return names.join(', ') + (count > MAX_NAMES ? ` and ${count - MAX_NAMES} more` : '')
}
