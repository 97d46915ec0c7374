import type { Clock } from '../../core/clock.js'
import type { Store } from '../../core/store.js'
import type { Metrics } from '../metrics/metrics.js'
import { eachOperation } from './each-operation.js'

/**
 * Wraps the store to measure each operation on schedules, runs, leases, instances and records: its duration, and
 * whether it failed.
 */
export function measured(store: Store, metrics: Metrics, clock: Clock): Store {
  return eachOperation(store, (operation, work) => {
    if (!operation.includes('.')) return work
    return async (...args) => {
      const startedAt = clock.monotonic()
      try {
        return await work(...args)
      } catch (error) {
        metrics.count('belfry_store_errors_total', { operation })
        throw error
      } finally {
        metrics.observe('belfry_store_operation_ms', { operation }, clock.monotonic() - startedAt)
      }
    }
  })
}
