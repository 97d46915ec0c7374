// @ts-check
/** What ticks in a chaos: every second, by jobs and policies of every kind. */

/** @typedef {import('../../dist/index.js').ScheduleInput<unknown>} ScheduleInput */

/**
 * What a schedule does, by the last digit of its place.
 * @type {readonly ((at: number) => Partial<ScheduleInput>)[]}
 */
const KINDS = [
  // A third have a key to themselves, the others share one in twos: then its runs queue up.
  (at) => ({ job: 'solo', payload: { key: at % 30 === 0 ? `own ${at}` : `shared ${Math.floor(at / 30)}` } }),
  () => ({ job: 'quick' }),
  (at) => ({ job: 'picky', payload: { key: `picky ${Math.floor(at / 20)}` } }),
  () => ({ job: 'slow' }),
  () => ({ job: 'slow', overlap: 'skip' }),
  () => ({ job: 'slow', overlap: 'queue-one' }),
  // Quick enough to make up for what an outage has queued.
  () => ({ job: 'brief', overlap: 'queue-all' }),
  () => ({ job: 'slow', overlap: 'cancel-running' }),
  () => ({ job: 'slow' }),
  () => ({ job: 'quick' }),
]

/** One at a time for each key. Who puts schedules of it knows that, so that no run has to wait for its key to be computed. */
export const SOLO = /** @type {const} */ ({ exclusive: { by: ['key'], whenBusy: 'wait' } })

/** @param {number} at @returns {ScheduleInput} */
export function scheduleInput(at) {
  const kind = KINDS[at % KINDS.length]?.(at)
  return /** @type {ScheduleInput} */ ({ every: '1s', payload: { at }, missed: { policy: 'all' }, ...kind })
}
