import { log } from '../../src/sinks/log.js'
import { SinkScene } from '../../src/testing/sink-contract.js'

/** Messages for tests of a sink that is not the contract's. */
export const scene = new SinkScene({ sink: log(), received: async () => [], down: async () => {}, up: async () => {} })

/** For calls that nothing stands in the way of. */
export const soon = () => AbortSignal.timeout(15_000)

export const yes = { delivered: true }
/** Fails for good. */
export const refused = { delivered: false, retryable: false, error: { code: 'SINK_REFUSED' } }
