/**
 * The store contract of `core/store.ts` as tests. A store is complete when all of them pass. Authors of other stores
 * can run the same suite.
 *
 *     storeContract({ name: 'postgres', open: async () => ({ ...(await freshSchema()), elapse: sleep }) })
 *
 * Every test opens a new, empty store. `elapse` lets time pass. For a store with a manual clock it advances that clock;
 * for others it sleeps, at most a second. Needs vitest.
 */
import { describe, expect, it } from 'vitest'
import { advance } from './contract/advance.js'
import { backlog } from './contract/backlog.js'
import { cancelAndRetry } from './contract/cancel-and-retry.js'
import { claim } from './contract/claim.js'
import { enqueue } from './contract/enqueue.js'
import { history } from './contract/history.js'
import { instances } from './contract/instances.js'
import { interruptions } from './contract/interruptions.js'
import { keys } from './contract/keys.js'
import { leaseQueue } from './contract/lease-queue.js'
import { leases } from './contract/leases.js'
import { overlap } from './contract/overlap.js'
import { records } from './contract/records.js'
import type { ContractCase, Interrupt, OpenedStore } from './contract/scene.js'
import { schedules } from './contract/schedules.js'
import { settle } from './contract/settle.js'
import { takeBack } from './contract/take-back.js'
import { takeover } from './contract/takeover.js'
import { wakeUps } from './contract/wake-ups.js'

export type { ContractCase, Interrupt, OpenedStore }

export interface ContractOptions {
  readonly name: string
  /** Makes a new, empty store. */
  readonly open: () => Promise<OpenedStore>
  /** Tests that do not apply, each with the reason. */
  readonly skip?: readonly { readonly test: string; readonly because: string }[]
}

/** The tests as data, for other test runners. */
export const contractCases: readonly ContractCase[] = [
  ...schedules,
  ...takeBack,
  ...advance,
  ...overlap,
  ...interruptions,
  ...enqueue,
  ...claim,
  ...backlog,
  ...keys,
  ...settle,
  ...cancelAndRetry,
  ...takeover,
  ...leases,
  ...leaseQueue,
  ...instances,
  ...history,
  ...records,
  ...wakeUps,
]

export function storeContract({ name, open, skip = [] }: ContractOptions): void {
  const areas = new Set(contractCases.map(({ area }) => area))
  describe(`the store contract: ${name}`, () => {
    for (const area of areas) {
      describe(area, () => {
        for (const test of contractCases.filter((candidate) => candidate.area === area)) declare(test, open, skip)
      })
    }
    it('skips only tests that exist', () => {
      const names = contractCases.map((test) => test.name)
      expect(skip.map(({ test }) => test).filter((test) => !names.includes(test))).toEqual([])
    })
  })
}

function declare(test: ContractCase, open: ContractOptions['open'], skip: NonNullable<ContractOptions['skip']>): void {
  const skipped = skip.find((entry) => entry.test === test.name)
  if (skipped === undefined) it(test.name, () => runCase(test, open))
  else it.skip(`${test.name} (skipped: ${skipped.because})`, () => {})
}

export async function runCase(test: ContractCase, open: ContractOptions['open']): Promise<void> {
  const opened = await open()
  await opened.store.open()
  try {
    await test.run(opened)
  } finally {
    await opened.store.close()
    await opened.close?.()
  }
}
