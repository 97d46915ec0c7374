/**
 * Simulates one seed: a time with faults, a calm time, then the drain, the checks and the stop. All randomness comes
 * from the seed, so a seed is reproducible.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import type { Store } from '../../src/core/store.js'
import { type Random, seededRandom } from '../../src/testing/random.js'
import type { Chronicle, Violation } from './chronicle.js'
import { SimulatedCluster } from './cluster.js'
import { type FinalState, readFinalState } from './final-state.js'
import { checkEndings } from './invariants/endings.js'
import { checkExecutions } from './invariants/executions.js'
import { checkFreeze } from './invariants/freeze.js'
import { checkKeys } from './invariants/keys.js'
import { checkOverlap } from './invariants/overlap.js'
import { checkSettlements } from './invariants/settlements.js'
import { checkTicks } from './invariants/ticks.js'
import { doRandomAction, putRandomSchedule } from './random-actions.js'

export interface Simulation {
  readonly violations: readonly Violation[]
  readonly chronicle: Chronicle
}

/** How long a cluster without faults may go without claiming or settling a run. */
const PATIENCE_MS = 180_000
const STEP_MS = 5_000

export async function simulate(seed: number, tamper: (store: Store) => Store = (store) => store): Promise<Simulation> {
  const restoreIds = seedIds(seededRandom(seed))
  const cluster = new SimulatedCluster(seed, tamper)
  const { chronicle } = cluster
  const onRejection = (error: unknown) => chronicle.violated('no rejection is unhandled', String(error))
  process.on('unhandledRejection', onRejection)
  try {
    await runWithFaults(cluster)
    await calmDown(cluster)
    await drain(cluster)
    const finalState = await readFinalState(cluster)
    checkEndings(chronicle, finalState)
    checkAll(chronicle, finalState)
    await stopAll(cluster)
  } finally {
    process.off('unhandledRejection', onRejection)
    restoreIds()
  }
  return { violations: chronicle.violations, chronicle }
}

function checkAll(chronicle: Chronicle, finalState: FinalState): void {
  checkTicks(chronicle, finalState)
  checkSettlements(chronicle)
  checkKeys(chronicle)
  checkExecutions(chronicle)
  checkOverlap(chronicle)
  checkFreeze(chronicle)
}

async function runWithFaults(cluster: SimulatedCluster): Promise<void> {
  const { clock, random, settings, slots } = cluster
  const endsAt = clock.now() + settings.faultyMs
  for (const slot of slots) clock.after(random.integer(0, 2_000), () => slot.open())
  for (let schedule = 1; schedule <= settings.schedules; schedule += 1) putRandomSchedule(cluster, `s${schedule}`)
  while (clock.now() < endsAt) {
    await clock.advance(random.integer(0, settings.actionMs * 2))
    doRandomAction(cluster)
  }
}

/** Ends all faults, restarts all instances, and lets them catch up. */
async function calmDown(cluster: SimulatedCluster): Promise<void> {
  const { clock, settings, chronicle, slots, operator } = cluster
  cluster.calm = true
  cluster.outageUntil = 0
  for (const slot of slots) slot.cutOffUntil = 0
  chronicle.note('calm')
  // Lets the effects of earlier faults end first.
  await clock.advance(Math.max(settings.leaseMs * 3, 15_000))
  for (const slot of slots) slot.resume()
  for (const slot of slots) slot.open()
  cluster.attempt('thaw', () => operator.thaw())
  await clock.advance(settings.leaseMs * 2 + 10_000)
  for (const [name] of cluster.stopping) chronicle.violated('an instance can always be stopped', `${name} still stops`)
}

/** Pauses all schedules and waits until every run has ended. */
async function drain(cluster: SimulatedCluster): Promise<void> {
  const { clock, chronicle, store, operator } = cluster
  for (const id of chronicle.schedules) cluster.attempt(`pause ${id}`, () => operator.schedules.pause(id))
  let [progress, progressAt] = [0, clock.now()]
  while (clock.now() - progressAt < PATIENCE_MS) {
    await clock.advance(STEP_MS)
    const { items } = await store.runs.list({ states: ['waiting', 'ready', 'running'], limit: 1 })
    if (items.length === 0) return
    const done = chronicle.of('claimed', 'settled').length
    if (done > progress) [progress, progressAt] = [done, clock.now()]
  }
}

async function stopAll({ clock, slots, chronicle, stopping, store, settings }: SimulatedCluster): Promise<void> {
  for (const slot of slots) slot.stop(0)
  await clock.advance(settings.leaseMs + 20_000)
  for (const [name] of stopping) chronicle.violated('an instance can always be stopped', `${name} still stops`, name)
  const left = await store.instances.list()
  for (const { id } of left) chronicle.violated('a stopped instance leaves the list', `${id} is still listed`, id)
}

/** Instance ids come from the seed too, because the pace of sweepers depends on them. */
function seedIds(random: Random): () => void {
  const { randomUUID } = crypto
  const hex = (digits: number) => Array.from({ length: digits }, () => random.integer(0, 15).toString(16)).join('')
  const replace = (make: typeof randomUUID) => {
    Object.assign(crypto, { randomUUID: make })
    syncBuiltinESMExports()
  }
  replace(() => `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`)
  return () => replace(randomUUID)
}
