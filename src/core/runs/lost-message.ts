/**
 * Why a run ended as `LOST`. The first `%s` is the number of takeovers, the second the last instance. SQL and Lua fill
 * in the same text.
 */
export const LOST_MESSAGE =
  'its instance stopped beating: killed, frozen, or its event loop was blocked. That happened %s times, last on instance %s: see docs/cpu-bound-jobs.md'

export function lostMessage(times: number, instance: string | null | undefined): string {
  return LOST_MESSAGE.replace('%s', String(times)).replace('%s', () => String(instance))
}
