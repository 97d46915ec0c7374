/**
 * The sink contract as tests: `core/sink.ts` says what a sink promises, and this holds it to it. A sink is done when all
 * of it passes; whoever writes their own can run the same suite.
 *
 *     sinkContract({ name: 'kafka', open: async () => ({ sink: kafka({ … }), received, down, up, close }) })
 *
 * One sink serves all tests, one after another: starting a broker costs more than they do. Every test makes its own
 * messages and looks for those alone. Needs vitest.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { delivering } from './sinks/delivering.js'
import { failing } from './sinks/failing.js'
import { type OpenedSink, type ReceivedMessage, type SinkContractCase, SinkScene } from './sinks/sink-scene.js'

export type { OpenedSink, ReceivedMessage, SinkContractCase }
export { SinkScene }

export interface SinkContractOptions {
  readonly name: string
  /** A sink and its other end, not opened yet. */
  readonly open: () => Promise<OpenedSink>
  /** Tests that do not apply, each with the reason. */
  readonly skip?: readonly { readonly test: string; readonly because: string }[]
  /** How long one test may take; bringing a broker back can take seconds. Default 60 s. */
  readonly timeoutMs?: number
}

/** The contract's tests as data, for those who want to run them otherwise. */
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
    it('skips only tests that there are', () => {
      const names = sinkContractCases.map((test) => test.name)
      expect(skip.map(({ test }) => test).filter((test) => !names.includes(test))).toEqual([])
    })
  })
}
