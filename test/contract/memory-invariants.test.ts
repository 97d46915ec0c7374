/**
 * The memory store is the model for the other stores, so this test checks its indexes after every step of long random
 * stories: no run is in two queues, no waiter waits without a holder, and at the end every run has ended.
 */
import { describe, expect, it } from 'vitest'
import { isFinished, type Outcome } from '../../src/core/runs/run.js'
import type { ClaimedRun, Store } from '../../src/core/store.js'
import { liveHolders } from '../../src/stores/memory/locks/acquire.js'
import { expiryOf } from '../../src/stores/memory/locks/lease-codec.js'
import { emptyState, type MemoryState } from '../../src/stores/memory/schema/state.js'
import { storeOn } from '../../src/stores/memory/store.js'
import { Scene } from '../../src/testing/contract/scene.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { type Random, seededRandom } from '../../src/testing/random.js'

const SEEDS = 60
const STEPS = 500

interface Story {
  readonly scene: Scene
  readonly store: Store
  readonly random: Random
  readonly claimed: ClaimedRun[]
}

const LIMITS: Record<string, number> = { k1: 1, k2: 2, k3: 1 }
const OVERLAPS = ['allow', 'skip', 'queue-one', 'queue-all', 'cancel-running'] as const

const steps: readonly [(story: Story) => Promise<unknown>, ...((story: Story) => Promise<unknown>)[]] = [
  enqueueSome,
  enqueueSome,
  enqueueSome,
  enqueueSome,
  claimSome,
  claimSome,
  claimSome,
  settleSome,
  settleSome,
  settleSome,
  settleSome,
  ({ scene, random }) => scene.elapse(random.integer(1, 400)),
  ({ scene, random }) => scene.advance({ lookaheadMs: random.pick([0, 500]) }),
  putSchedule,
  async ({ store, random }) => store.schedules.pause(`s${random.integer(1, 5)}`, undefined),
  async ({ store, random }) => store.schedules.resume(`s${random.integer(1, 5)}`),
  async ({ store, random }) => random.chance(0.3) && store.schedules.remove([`s${random.integer(1, 5)}`]),
  async ({ store, random }) => store.runs.cancel(`r${random.integer(1, 120)}`),
  async ({ store, random }) => store.runs.retry(`r${random.integer(1, 120)}`),
  async ({ store, random }) => store.leases.reset(`k${random.integer(1, 3)}`),
  async ({ store }) => store.runs.rescue(3),
  async ({ store }) => store.runs.prune({ maxAgeMs: 5_000, maxRuns: 50, leaseAgeMs: 2_000, limit: 10 }),
  stampSome,
  lockSome,
  ({ scene, random }) => scene.join(`i${random.integer(1, 3)}`, random.pick([300, 1_000, 5_000])),
  beatSome,
  async ({ store, random }) => random.chance(0.2) && store.instances.leave(`i${random.integer(1, 3)}`),
]

async function enqueueSome({ scene, random }: Story) {
  const name = random.pick(['k1', 'k2', 'k3', undefined])
  const stamped = random.chance(0.9)
  await scene.tryEnqueue({
    target: { job: random.chance(0.03) ? 'nobody' : random.pick(['work', 'other']) },
    priority: random.integer(0, 2),
    keep: random.pick(['all', 'failures', 'none']),
    delayMs: random.pick([0, 0, 200, 1_000]),
    ...(random.chance(0.2) ? { dedupe: `d${random.integer(1, 4)}`, dedupeForMs: random.pick([0, 500]) } : {}),
    ...(random.chance(0.3) ? { schedule: `s${random.integer(1, 5)}`, origin: 'trigger' } : {}),
    ...(random.chance(0.5) ? { overlap: random.pick(OVERLAPS) } : {}),
    ...(name === undefined ? {} : { key: stamped ? keyOf(name, random) : 'unstamped', checkKey: random.chance(0.3) }),
  })
}

function keyOf(name: string, random: Random) {
  return { name, limit: LIMITS[name] ?? 1, whenBusy: random.pick(['wait', 'wait', 'skip'] as const) }
}

async function claimSome({ scene, random, claimed }: Story) {
  claimed.push(...(await scene.claim(`i${random.integer(1, 3)}`, { limit: random.integer(1, 4) })))
}

async function settleSome({ scene, random, claimed }: Story) {
  const [run] = claimed.splice(random.integer(0, Math.max(claimed.length - 1, 0)), 1)
  if (run === undefined) return
  const error = { message: 'no' }
  const outcome = random.pick<Outcome>([
    { kind: 'succeeded', result: 1 },
    { kind: 'failed', error },
    { kind: 'retry', error, delayMs: random.pick([0, 300]) },
    { kind: 'released' },
    { kind: 'cancelled' },
  ])
  await scene.settle(run, outcome)
}

async function putSchedule({ scene, random }: Story) {
  const name = random.pick(['k1', 'k3', undefined, undefined])
  const id = `s${random.integer(1, 5)}`
  await scene.put(id, {
    timeline: { every: random.pick([200, 300]) },
    overlap: random.pick(OVERLAPS),
    keep: random.pick(['all', 'none']),
    missed: { policy: random.pick(['skip', 'latest', 'all']), max: 5, graceMs: 300 },
    ...(random.chance(0.3) ? { deadlineMs: 300 } : {}),
    ...(name === undefined ? {} : { key: keyOf(name, random) }),
  })
}

async function stampSome({ store, random }: Story) {
  const { items } = await store.runs.list({ waitsFor: 'stamp', limit: 2 })
  await store.runs.stamp(items.map(({ id }) => ({ run: id, key: keyOf(random.pick(['k1', 'k2', 'k3']), random) })))
}

async function lockSome({ scene, store, random }: Story) {
  const name = `k${random.integer(1, 3)}`
  const holder = `h${random.integer(1, 3)}`
  if (random.chance(0.5)) await store.leases.release({ name, holder, minHoldMs: random.pick([0, 300]) })
  else await scene.tryAcquire(name, holder, { ttlMs: 400, permits: LIMITS[name] ?? 1, waitMs: random.pick([0, 500]) })
}

async function beatSome({ scene, random, claimed }: Story) {
  const instance = `i${random.integer(1, 3)}`
  const own = claimed.filter((run) => run.instance === instance && random.chance(0.9))
  await scene.beat(instance, own, 1_000)
}

/** Invariants that hold between any two operations. */
function problems(state: MemoryState): string[] {
  const found: string[] = []
  const check = (holds: boolean, problem: string) => void (holds || found.push(problem))
  for (const run of state.runs.values()) {
    const { id } = run
    const { ready, delayed } = run.queue
    const isQueued = ready.has(run) || delayed.has(run)
    check((run.state === 'ready') === isQueued, `${id}: ${run.state} and in the claim queue`)
    check((run.state === 'running') === (run.owner?.running.has(run) === true), `${id}: ${run.state} and owned`)
    check((run.lease !== undefined) === (run.state === 'running' && run.key !== undefined), `${id}: key`)
    check(run.lease === undefined || run.lease.name.holders.get(run.lease.holder) === run.lease, `${id}: holds its key`)
    check((run.waitsFor !== undefined) === (run.state === 'waiting'), `${id}: ${run.state} and waits`)
    check((run.waitsFor === 'stamp') === state.stampless.has(run), `${id}: stampless`)
    check(isFinished(run) === state.ended.has(run), `${id}: ended`)
    if (isFinished(run)) {
      const { standing, waiting } = state.names.get(run.key?.name ?? '') ?? {}
      const isInLine = [standing, waiting, run.lane?.waiting, state.early].some((line) => line?.has(run))
      check(run.lane?.engaged.has(run) !== true && !isInLine, `${id}: still engaged`)
    }
  }
  for (const name of state.names.values()) {
    const now = state.clock.now()
    check(name.holders.size <= (LIMITS[name.name] ?? 1), `${name.name}: too many holders`)
    const first = name.waiting.first
    const older = name.standing.first
    const free = liveHolders(name, now).length < (first?.key?.limit ?? 0)
    const expired = [...name.holders.values()].some((lease) => expiryOf(lease) <= now)
    const blocked = older !== undefined && first !== undefined && older.order < first.order
    check(first === undefined || !free || expired || blocked, `${name.name}: ${first?.id} waits for nothing`)
    check(first === undefined || state.blocked.has(name), `${name.name}: not known as blocked`)
  }
  for (const lane of state.lanes.values()) {
    check(lane.waiting.size === 0 || lane.engaged.size > lane.waiting.size, `${lane.id}: waits for nothing`)
    for (const run of lane.engaged) check(!isFinished(run) && state.runs.has(run.id), `${lane.id}: engaged ${run.id}`)
  }
  return found
}

/** Moves all runs to one instance that does not die, and runs it until nothing is left to claim. */
async function finish({ scene, store }: Story, state: MemoryState): Promise<void> {
  await store.schedules.remove([...state.schedules.keys()])
  for (const id of ['i1', 'i2', 'i3']) await store.instances.leave(id)
  await scene.join('last')
  for (let round = 0; round < 400; round += 1) {
    await scene.elapse(500)
    await store.runs.rescue(1_000)
    const { items } = await store.runs.list({ waitsFor: 'stamp', limit: 100 })
    await store.runs.stamp(items.map(({ id }) => ({ run: id, key: { name: 'k1', limit: 1, whenBusy: 'wait' } })))
    const jobs = ['work', 'other', 'nobody'].map((name) => ({ name, limit: 100 }))
    const runs = await scene.claim('last', { jobs })
    for (const run of runs) expect(await scene.settle(run)).toBe('settled')
    if (runs.length === 0 && round > 20) return
  }
}

describe('the memory store keeps its invariants', () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    it(`through story ${seed}`, async () => {
      const clock = manualClock()
      const state = emptyState(clock)
      const store = storeOn(state)
      const story = {
        scene: new Scene({ store, elapse: clock.advance }),
        store,
        random: seededRandom(seed),
        claimed: [],
      }
      for (let step = 0; step < STEPS; step += 1) {
        await story.random.pick(steps)(story)
        expect(problems(state), `after step ${step}`).toEqual([])
      }
      await finish(story, state)
      expect(
        [...state.runs.values()].filter((run) => !isFinished(run)).map(({ id, state }) => `${id} ${state}`),
      ).toEqual([])
      clock.set(clock.now() + 10_000_000)
      await store.runs.prune({ maxAgeMs: 0, maxRuns: 0, leaseAgeMs: 0, limit: 100_000 })
      await store.runs.prune({ maxAgeMs: 0, maxRuns: 0, leaseAgeMs: 0, limit: 100_000 })
      const sizes = [
        state.runs,
        state.lanes,
        state.names,
        state.dedupes,
        state.blocked,
        state.lastTokens,
        state.ended,
        state.skips,
      ]
      expect(sizes.map(({ size }) => size)).toEqual(sizes.map(() => 0))
    })
  }
})
