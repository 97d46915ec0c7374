import type { Clock } from '../core/clock.js'
import type { EngineRole, InstanceInfo } from '../core/instances/instance.js'
import type { TokenFloor } from '../core/locks/token.js'
import type { Logger } from '../core/logger.js'
import type { PruneRequest, Store } from '../core/store.js'
import type { JobDefinition, SinkDefinition } from './definitions.js'
import type { Events } from './events.js'
import type { Health } from './health.js'
import type { BeatThread } from './instances/beat-thread.js'

/** Worker threads for handlers that are modules. */
export interface ThreadOptions {
  readonly max: number
  readonly idleMs: number
  readonly memoryMb: number | undefined
}

export interface EngineOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  readonly health: Health
  readonly floor: TokenFloor
  readonly jobs: ReadonlyMap<string, JobDefinition>
  readonly sinks: ReadonlyMap<string, SinkDefinition>
  readonly storeIdentity: () => string
  readonly roles: readonly EngineRole[]
  readonly leaseMs: number
  readonly heartbeatMs: number
  readonly pollMs: number
  readonly lookaheadMs: number
  readonly batch: number
  readonly concurrency: number
  readonly threads: ThreadOptions
  readonly history: Pick<PruneRequest, 'maxAgeMs' | 'maxRuns'>
  readonly describe: () => Omit<InstanceInfo, 'id'>
  readonly stampKeys: () => Promise<void>
  readonly syncReleases: () => Promise<void>
  readonly beatThread: BeatThread
  /** Whether the event loop is late. While it is, claims are smaller. */
  readonly isLoopBusy: () => boolean
}
