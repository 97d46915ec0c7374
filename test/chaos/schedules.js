// @ts-check
/** The schedules of a chaos run: every second, with jobs and policies of every kind. */

/** @typedef {import('../../dist/index.js').ScheduleInput<unknown>} ScheduleInput */

/**
 * What a schedule does, by the last digit of its number.
 * @type {readonly ((at: number) => Partial<ScheduleInput>)[]}
 */
const KINDS = [
  // A third of these schedules have a key of their own. Two others share each key, so that their runs queue up.
  (at) => ({ job: 'solo', payload: { key: at % 30 === 0 ? `own ${at}` : `shared ${Math.floor(at / 30)}` } }),
  () => ({ job: 'quick' }),
  (at) => ({ job: 'picky', payload: { key: `picky ${Math.floor(at / 20)}` } }),
  () => ({ job: 'slow' }),
  () => ({ job: 'slow', overlap: 'skip' }),
  () => ({ job: 'slow', overlap: 'queue-one' }),
  // The job is short, so that the queue of an outage empties in time.
  () => ({ job: 'brief', overlap: 'queue-all' }),
  () => ({ job: 'slow', overlap: 'cancel-running' }),
  () => ({ job: 'slow' }),
  () => ({ job: 'quick' }),
]

/**
 * One run at a time per key. The process that puts the schedules defines the job with this option too, so that every
 * run has its key from the start.
 */
export const SOLO = /** @type {const} */ ({ exclusive: { by: ['key'], whenBusy: 'wait' } })

/** @param {number} at @returns {ScheduleInput} */
export function scheduleInput(at) {
  const kind = KINDS[at % KINDS.length]?.(at)
  return /** @type {ScheduleInput} */ ({ every: '1s', payload: { at }, missed: { policy: 'all' }, ...kind })
}
