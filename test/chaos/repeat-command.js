// @ts-check
/**
 * The command line that repeats a chaos run with the same planned faults.
 * @param {object} settings
 * @param {string} settings.store
 * @param {string} [settings.liveness]
 * @param {boolean} [settings.isPooled]
 * @param {string} [settings.failover]
 * @param {number} settings.seconds
 * @param {number} settings.processes
 * @param {number} settings.schedules
 * @param {number} settings.seed
 */
export function repeatCommand({ store, liveness, isPooled = false, failover, seconds, processes, schedules, seed }) {
  const minutes = Math.round((seconds / 60) * 1_000) / 1_000
  const mode = liveness === undefined ? '' : ` --liveness ${liveness}`
  const pooler = isPooled ? ' --pgbouncer' : failover === undefined ? '' : ` --failover ${failover}`
  return `npm run chaos -- --store ${store}${mode}${pooler} --minutes ${minutes} --processes ${processes} --schedules ${schedules} --seed ${seed}`
}
