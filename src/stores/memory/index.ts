/**
 * The memory store: the model of the other stores. Every operation is one synchronous step, so it is atomic without any locking;
 * `store.ts` is the table of contents, and `schema/state.ts` says what is stored.
 */

import { checkOptions } from '../../core/checks/known-options.js'
import { type Clock, systemClock } from '../../core/clock.js'
import type { Store } from '../../core/store.js'
import { emptyState } from './schema/state.js'
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
