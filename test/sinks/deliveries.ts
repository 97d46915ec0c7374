import { log } from '../../src/sinks/log.js'
import { SinkScene } from '../../src/testing/sink-contract.js'

/** Builds messages for tests outside the sink contract. */
export const scene = new SinkScene({ sink: log(), received: async () => [], down: async () => {}, up: async () => {} })

/** A generous timeout for calls that should succeed. */
export const soon = () => AbortSignal.timeout(15_000)

export const yes = { delivered: true }
export const refused = { delivered: false, retryable: false, error: { code: 'SINK_REFUSED' } }
