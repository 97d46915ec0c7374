/**
 * Random stories of one schedule that allows one run at a time. Ticks, triggers, claims and settlements happen
 * concurrently, also between the read and the write of an `advance`. After each step the store must satisfy the policy.
 */
import { expect } from 'vitest'
import type { Overlap } from '../../src/core/policies.js'
import type { Outcome, Run } from '../../src/core/runs/run.js'
import { failed, type OpenedStore, retryIn, Scene } from '../../src/testing/contract/scene.js'
import { type Random, seededRandom } from '../../src/testing/random.js'

export const LIMITING = ['skip', 'queue-one', 'queue-all', 'cancel-running'] as const satisfies readonly Overlap[]
type Limiting = (typeof LIMITING)[number]

/** How many runs may wait behind the running one. */
const WAITING: Readonly<Record<Limiting, number>> = {
  skip: 0,
  'queue-one': 1,
  'queue-all': Number.POSITIVE_INFINITY,
  'cancel-running': 1,
}

const EVERY = 2_000
const GRACE = 3_000
const STEPS = 15
const OUTCOMES: readonly [Outcome, ...Outcome[]] = [
  { kind: 'succeeded' },
  { kind: 'succeeded' },
  failed(),
  retryIn(0),
  retryIn(5_000),
  { kind: 'released' },
]

interface Story {
  readonly scene: Scene
  readonly overlap: Limiting
  readonly random: Random
  /** The steps so far, for the message of a failure. */
  readonly steps: string[]
}

type Operation = (story: Story) => Promise<unknown>

const OPERATIONS: Readonly<Record<string, Operation>> = {
  advance: ({ scene }) => scene.advance(),
  trigger: ({ scene, overlap }) => scene.tryEnqueue({ origin: 'trigger', schedule: 'a', overlap }),
  'claim for one': ({ scene }) => scene.claim('one'),
  'claim for two': ({ scene }) => scene.claim('two'),
  async settle({ scene, random }) {
    const run = (await unfinished(scene)).find(({ state }) => state === 'running')
    if (run !== undefined) await scene.settle({ id: run.id, token: run.token ?? 0 }, random.pick(OUTCOMES))
  },
  async cancel({ scene, random }) {
    const [first, ...rest] = await unfinished(scene)
    if (first !== undefined) await scene.store.runs.cancel(random.pick([first, ...rest]).id)
  },
  rescue: ({ scene }) => scene.store.runs.rescue(100),
}
const NAMES = Object.keys(OPERATIONS) as [string, ...string[]]

export async function runOverlapStory(
  open: () => Promise<OpenedStore>,
  overlap: Limiting,
  seed: number,
): Promise<void> {
  const opened = await open()
  await opened.store.open()
  const story: Story = { scene: new Scene(opened), overlap, random: seededRandom(seed), steps: [] }
  try {
    await run(story)
  } finally {
    await opened.store.close()
    await opened.close?.()
  }
}

async function run(story: Story): Promise<void> {
  const { scene, overlap } = story
  for (const instance of ['one', 'two']) await scene.join(instance)
  const missed = { policy: 'latest', max: 1_000, graceMs: GRACE } as const
  await scene.put('a', { timeline: { every: EVERY }, overlap, missed })
  for (let count = 0; count < STEPS; count += 1) {
    await step(story)
    await checkPolicy(story)
  }
  await finishAll(story)
}

/** Advances the clock, and then performs several operations at once. A long pause makes the schedule miss ticks. */
async function step(story: Story): Promise<void> {
  const { scene, random, steps } = story
  const ms = random.pick([EVERY, EVERY, EVERY + 500, 3 * EVERY + GRACE])
  await scene.elapse(ms)
  const names = Array.from({ length: random.integer(1, 3) }, () => random.pick(NAMES))
  const interrupts = random.chance(0.4)
  steps.push(`after ${ms} ms ${interrupts ? 'an advance is interrupted by ' : ''}${names.join(' and ')}`)
  const runAll = () => Promise.all(names.map((name) => OPERATIONS[name]?.(story)))
  if (interrupts) await scene.interrupt((other) => other.advance(), runAll)
  else await runAll()
}

async function unfinished({ runsOf }: Scene): Promise<Run[]> {
  return (await runsOf('a')).filter(({ state }) => state === 'running' || state === 'ready' || state === 'waiting')
}

async function checkPolicy({ scene, overlap, steps }: Story): Promise<void> {
  const open = await unfinished(scene)
  const waiting = open.filter(({ waitsFor }) => waitsFor === 'overlap')
  const going = open.filter(({ waitsFor }) => waitsFor !== 'overlap')
  const seen = open.map(({ id, origin, state, attempt }) => `${id} ${origin} ${state} ${attempt}`)
  const message = `${overlap}: ${seen.join(', ')}\n${steps.join('\n')}`
  expect(going.length, message).toBeLessThanOrEqual(1)
  expect(waiting.length, message).toBeLessThanOrEqual(WAITING[overlap])
}

/** Checks that each tick up to the cursor is one run or within one recorded skip, and that every waiting run starts. */
async function finishAll(story: Story): Promise<void> {
  const { scene, steps } = story
  await scene.store.schedules.pause('a', undefined)
  for (let left = await unfinished(scene); left.length > 0; left = await unfinished(scene)) {
    const before = left.map(({ id, state, attempt }) => `${id} ${state} ${attempt}`)
    await scene.elapse(5_000)
    await scene.claim('one')
    const run = (await unfinished(scene)).find(({ state }) => state === 'running')
    expect(run, `no run starts: ${before.join(', ')}\n${steps.join('\n')}`).toBeDefined()
    await scene.settle({ id: run?.id ?? '', token: run?.token ?? 0 })
    await checkPolicy(story)
  }
  const { anchor, cursor } = await scene.schedule('a')
  const ticks = (await scene.runsOf('a')).filter(({ origin }) => origin === 'tick')
  const ranges = await scene.store.schedules.skips('a', 0, Number.MAX_SAFE_INTEGER, 1_000)
  const skipped = ranges.reduce((sum, { count }) => sum + count, 0)
  expect(new Set(ticks.map(({ tick }) => tick)).size).toBe(ticks.length)
  expect(ticks.length + skipped, steps.join('\n')).toBe(Math.floor((cursor - anchor) / EVERY))
}
