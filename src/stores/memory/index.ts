/**
 * The memory store: the reference model. Every operation runs in one synchronous step, so it is atomic without locks,
 * and the contract of all stores can be read here.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import { checkOptions } from '../../core/known-options.js'
import type { Store } from '../../core/store.js'
import { emptyState } from './state.js'
import { storeOn } from './store.js'

export interface MemoryOptions {
  /** The store's clock; the system's by default. */
  readonly clock?: Clock
}

export function memory(options: MemoryOptions = {}): Store {
  checkOptions(options, ['clock'], 'memory()')
  const { clock = systemClock } = options
  return storeOn(emptyState(clock))
}
