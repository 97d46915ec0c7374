/** Why a run ended as `LOST`, with a `%s` for how often it happened and one for where it did last: SQL and Lua fill it in, too. */
export const LOST_MESSAGE =
  'its instance stopped beating: killed, frozen, or its event loop was blocked. That happened %s times, last on instance %s: see docs/cpu-bound-jobs.md'

export function lostMessage(times: number, instance: string | null | undefined): string {
  return LOST_MESSAGE.replace('%s', String(times)).replace('%s', () => String(instance))
}
