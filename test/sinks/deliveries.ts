import { log } from '../../src/sinks/log.js'
import { type OpenedSink, SinkScene, sinkContractCases } from '../../src/testing/sink-contract.js'

/** Builds messages for tests outside the sink contract. */
export const scene = new SinkScene({ sink: log(), received: async () => [], down: async () => {}, up: async () => {} })

/** A generous timeout for calls that should succeed. */
export const soon = () => AbortSignal.timeout(15_000)

/** The case of the sink contract for a client that answers for some messages only, with a client made for it. */
export async function runAnsweredInPart(
  opened: Required<Pick<OpenedSink, 'sink' | 'received' | 'answerInPart'>>,
): Promise<void> {
  const found = sinkContractCases.find(({ name }) => name.startsWith('what the answer of a client leaves out'))
  if (found === undefined) throw new Error('the sink contract has no such case')
  await found.run(new SinkScene({ ...scene.opened, ...opened }))
}

export const yes = { delivered: true }
export const refused = { delivered: false, retryable: false, error: { code: 'SINK_REFUSED' } }
