/**
 * The sink contract of `core/sink.ts` as tests. A sink is complete when all of them pass. Authors of other sinks can run the
 * same suite.
 *
 *     sinkContract({ name: 'kafka', open: async () => ({ sink: kafka({ … }), received, down, up, close }) })
 *
 * All tests share one sink, because starting a broker takes long. Every test sends its own messages and looks only for
 * those. Needs vitest.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { delivering } from './sinks/delivering.js'
import { failing } from './sinks/failing.js'
import { type OpenedSink, type ReceivedMessage, type SinkContractCase, SinkScene } from './sinks/sink-scene.js'

export type { OpenedSink, ReceivedMessage, SinkContractCase }
export { SinkScene }

export interface SinkContractOptions {
  readonly name: string
  /** Makes a sink that is not open yet, with access to its broker. */
  readonly open: () => Promise<OpenedSink>
  /** Tests that do not apply, each with the reason. */
  readonly skip?: readonly { readonly test: string; readonly because: string }[]
  /** How long one test may take. Restarting a broker can take seconds. Default 60 s. */
  readonly timeoutMs?: number
}

/** The tests as data, for other test runners. */
export const sinkContractCases: readonly SinkContractCase[] = [...delivering, ...failing]

const TIMEOUT_MS = 60_000

export function sinkContract({ name, open, skip = [], timeoutMs = TIMEOUT_MS }: SinkContractOptions): void {
  describe(`the sink contract: ${name}`, () => {
    let opened: OpenedSink | undefined
    beforeAll(async () => {
      opened = await open()
      await opened.sink.open?.()
    }, timeoutMs)
    afterAll(async () => {
      await opened?.sink.close?.()
      await opened?.close?.()
    }, timeoutMs)
    for (const test of sinkContractCases) {
      const skipped = skip.find((entry) => entry.test === test.name)
      if (skipped !== undefined) it.skip(`${test.name} (skipped: ${skipped.because})`, () => {})
      else it(test.name, () => test.run(new SinkScene(opened as OpenedSink)), timeoutMs)
    }
    it('skips only tests that exist', () => {
      const names = sinkContractCases.map((test) => test.name)
      expect(skip.map(({ test }) => test).filter((test) => !names.includes(test))).toEqual([])
    })
  })
}
