// @ts-check
/**
 * The command that plans the same faults again.
 * @param {{ store: string, seconds: number, processes: number, schedules: number, seed: number }} settings
 */
export function repeatCommand({ store, seconds, processes, schedules, seed }) {
  const minutes = Math.round((seconds / 60) * 1_000) / 1_000
  return `npm run chaos -- --store ${store} --minutes ${minutes} --processes ${processes} --schedules ${schedules} --seed ${seed}`
}
