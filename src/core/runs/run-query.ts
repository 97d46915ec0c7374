/** Which runs a list contains, for stores that filter what their indexes find. */
import type { RunQuery } from '../store.js'
import { ownerOf, type Run } from './run.js'

type Listed = Pick<Run, 'target' | 'state'> & {
  readonly [Field in 'tick' | 'key' | 'waitsFor']?: Run[Field] | undefined
}

export function matchesRun(run: Listed, schedule: string | undefined, query: RunQuery): boolean {
  const { target, tick, key, state, waitsFor } = run
  return (
    (query.prefix === undefined || ownerOf({ target, schedule }).startsWith(query.prefix)) &&
    (query.schedule === undefined || schedule === query.schedule) &&
    (query.tick === undefined || tick === query.tick) &&
    (query.job === undefined || ('job' in target && target.job === query.job)) &&
    (query.sink === undefined || ('sink' in target && target.sink === query.sink)) &&
    (query.key === undefined || key?.name === query.key) &&
    (query.states === undefined || query.states.includes(state)) &&
    (query.waitsFor === undefined || waitsFor === query.waitsFor)
  )
}
