// @ts-check
/** The schedules of a chaos run: every second, with jobs and policies of every kind. */

/** @typedef {import('../../dist/index.js').ScheduleInput<unknown>} ScheduleInput */

/**
 * What a schedule does, by the last digit of its number.
 * @type {readonly ((at: number) => Partial<ScheduleInput>)[]}
 */
const KINDS = [
  // A third have their own key; the others share one in pairs, so that their runs queue up.
  (at) => ({ job: 'solo', payload: { key: at % 30 === 0 ? `own ${at}` : `shared ${Math.floor(at / 30)}` } }),
  () => ({ job: 'quick' }),
  (at) => ({ job: 'picky', payload: { key: `picky ${Math.floor(at / 20)}` } }),
  () => ({ job: 'slow' }),
  () => ({ job: 'slow', overlap: 'skip' }),
  () => ({ job: 'slow', overlap: 'queue-one' }),
  // Quick enough to catch up on the queue after an outage.
  () => ({ job: 'brief', overlap: 'queue-all' }),
  () => ({ job: 'slow', overlap: 'cancel-running' }),
  () => ({ job: 'slow' }),
  () => ({ job: 'quick' }),
]

/**
 * One run at a time per key. The code that puts the schedules knows this option, so no run waits for its key to be
 * computed.
 */
export const SOLO = /** @type {const} */ ({ exclusive: { by: ['key'], whenBusy: 'wait' } })

/** @param {number} at @returns {ScheduleInput} */
export function scheduleInput(at) {
  const kind = KINDS[at % KINDS.length]?.(at)
  return /** @type {ScheduleInput} */ ({ every: '1s', payload: { at }, missed: { policy: 'all' }, ...kind })
}
