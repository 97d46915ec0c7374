/** Any value passed to any public function either works or throws a Belfry error that names the problem. */
import { afterAll, describe, expect, it } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { type Belfry, BelfryError, createBelfry, type Job, type ScheduleInput } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { createTestBelfry } from '../../src/testing/index.js'
import { temporaryFile } from '../stores/temporary-file.js'

const nonsense: readonly unknown[] = [
  undefined,
  null,
  true,
  0,
  Number.NaN,
  -1,
  'text',
  '',
  7n,
  Symbol('s'),
  () => null,
  [],
  [undefined],
  [null, 5],
  [['a']],
  [['a', undefined]],
  [{}],
  {},
  { id: 'a' },
  { limit: 'many' },
  { limit: -1 },
  { limit: 1.5 },
  { prefix: 5 },
  { after: {} },
  { payload: Symbol('s') },
  { a: undefined },
  { a: null },
  { a: 5 },
  { job: {} },
  { every: '1h', job: {} },
  { every: '1h', job: null },
  { every: '1h', job: 'work', missed: 5 },
  { every: '1h', job: 'work', missed: null },
  { every: '1h', job: 'work', dst: 5 },
  { cron: 5, job: 'work' },
  { cron: null, job: 'work' },
  { every: {}, job: 'work' },
  { at: {}, job: 'work' },
  { at: [null], job: 'work' },
  { cron: '* * * * *', timezone: 5, job: 'work' },
  { timeout: {} },
  { ifVersion: 'new' },
  { state: 'odd' },
  { state: 5 },
  { from: {}, to: {} },
  { ttl: {} },
  { holder: {} },
  { grace: {} },
  { run: 5 },
  { run: () => null, retry: 5 },
  { run: () => null, exclusive: 5 },
  { run: () => null, exclusive: { by: 5 } },
  { store: {} },
  { tx: 5 },
  new Date(Number.NaN),
  new Map([[1, 2]]),
  Object.create(null),
]

type Call = (...args: never[]) => unknown

/**
 * Calls a method with every nonsense value: alone, after one and after two valid arguments, and twice. Returns the
 * calls that threw something other than a readable Belfry error.
 */
async function rawErrors(call: Call, good: readonly unknown[]): Promise<string[]> {
  const raw: string[] = []
  const lists = nonsense.flatMap((odd) => [[odd], [...good.slice(0, 1), odd], [...good.slice(0, 2), odd], [odd, odd]])
  for (const args of lists) {
    try {
      await (call as (...args: unknown[]) => unknown)(...args)
    } catch (error) {
      if (!(error instanceof BelfryError)) raw.push(`${args.map(describeValue).join(', ')} → ${String(error)}`)
      else if (error.message.length < 15)
        raw.push(`${args.map(describeValue).join(', ')} → too short: ${error.message}`)
    }
  }
  return raw
}

function describeValue(value: unknown): string {
  if (typeof value === 'symbol' || typeof value === 'bigint' || typeof value === 'function') return typeof value
  return Object.prototype.toString.call(value) + JSON.stringify(value)
}

type Kit = { readonly belfry: Belfry; readonly job: Job<unknown> }

const file = temporaryFile()
const kits: Readonly<Record<string, Promise<Kit>>> = {
  memory: kitOn(memory()),
  sqlite: kitOn(sqlite({ path: file.path })),
}

afterAll(async () => {
  for (const { belfry } of await Promise.all(Object.values(kits))) await belfry.stop()
  await file.remove()
})

async function kitOn(store: Store): Promise<Kit> {
  const belfry = createBelfry({ store, roles: [] })
  const job = belfry.job<unknown>('work', { exclusive: { by: ['region'] }, run: () => null })
  await belfry.start()
  await belfry.schedules.put('there', { every: '1h', job })
  return { belfry, job }
}

const input = { every: '1h', job: 'work' }

type Case = [name: string, of: (kit: Kit) => unknown, ...good: unknown[]]

const methods: readonly Case[] = [
  ['schedules.put', ({ belfry }) => belfry.schedules.put.bind(belfry.schedules), 'a', input],
  ['schedules.add', ({ belfry }) => belfry.schedules.add.bind(belfry.schedules), [input]],
  ['schedules.putMany', ({ belfry }) => belfry.schedules.putMany.bind(belfry.schedules), [['a', input]]],
  ['schedules.get', ({ belfry }) => belfry.schedules.get.bind(belfry.schedules), 'there'],
  ['schedules.list', ({ belfry }) => belfry.schedules.list.bind(belfry.schedules), {}],
  ['schedules.remove', ({ belfry }) => belfry.schedules.remove.bind(belfry.schedules), 'gone'],
  ['schedules.pause', ({ belfry }) => belfry.schedules.pause.bind(belfry.schedules), 'there'],
  ['schedules.resume', ({ belfry }) => belfry.schedules.resume.bind(belfry.schedules), 'there'],
  ['schedules.trigger', ({ belfry }) => belfry.schedules.trigger.bind(belfry.schedules), 'there'],
  ['schedules.backfill', ({ belfry }) => belfry.schedules.backfill.bind(belfry.schedules), 'there'],
  ['schedules.preview', ({ belfry }) => belfry.schedules.preview.bind(belfry.schedules), 'there'],
  ['schedules.explain', ({ belfry }) => belfry.schedules.explain.bind(belfry.schedules), 'there'],
  ['schedules.apply', ({ belfry }) => belfry.schedules.apply.bind(belfry.schedules), { a: input }],
  ['runs.get', ({ belfry }) => belfry.runs.get.bind(belfry.runs), '1'],
  ['runs.list', ({ belfry }) => belfry.runs.list.bind(belfry.runs), {}],
  ['runs.cancel', ({ belfry }) => belfry.runs.cancel.bind(belfry.runs), '1'],
  ['runs.retry', ({ belfry }) => belfry.runs.retry.bind(belfry.runs), '1'],
  ['runs.wait', ({ belfry }) => belfry.runs.wait.bind(belfry.runs), 'none'],
  ['locks.list', ({ belfry }) => belfry.locks.list.bind(belfry.locks), {}],
  ['locks.inspect', ({ belfry }) => belfry.locks.inspect.bind(belfry.locks), 'l'],
  ['locks.reset', ({ belfry }) => belfry.locks.reset.bind(belfry.locks), 'l'],
  ['lock', ({ belfry }) => belfry.lock.bind(belfry), 'l'],
  ['withLock', ({ belfry }) => belfry.withLock.bind(belfry), 'l', () => null],
  ['freeze', ({ belfry }) => belfry.freeze.bind(belfry)],
  ['on', ({ belfry }) => belfry.on.bind(belfry), 'run:started'],
  ['enqueue', ({ job }) => job.enqueue.bind(job), { region: 'eu' }],
  ['enqueueMany', ({ job }) => job.enqueueMany.bind(job), [{ payload: 1 }]],
  ['available', ({ job }) => job.available.bind(job), { region: 'eu' }],
  ['createBelfry', () => createBelfry],
  ['createBelfry with a store', () => (options: object) => createBelfry({ store: memory(), ...options })],
  ['memory', () => memory],
  [
    'job',
    () =>
      (...args: ['a', { run: () => null }]) =>
        createBelfry({ store: memory() }).job(...args),
    'a',
  ],
  ['schedule', () => declared, 'a'],
  ['stop', () => (options: object) => createBelfry({ store: memory() }).stop(options)],
  ['createTestBelfry', () => createTestBelfry],
]

/** Declares a schedule and starts the instance, because `start()` is what checks declarations. */
async function declared(...args: [id: string, input: ScheduleInput]): Promise<void> {
  const belfry = createBelfry({ store: memory() })
  belfry.schedule(...args)
  await belfry.start()
  await belfry.stop()
}

describe.each(Object.keys(kits))('misuse on the %s store', (name) => {
  for (const [method, of, ...good] of methods) {
    it(`of ${method} throws an error in words`, async () => {
      const kit = await kits[name]
      if (kit === undefined) throw new Error(`there is no kit ${name}`)
      expect(await rawErrors(of(kit) as Call, good)).toEqual([])
    })
  }
})

type Act = (kit: Kit) => Promise<unknown>

describe('the error of a misuse says what to do instead', () => {
  it.each<[what: string, act: Act, message: RegExp]>([
    [
      'schedules as objects with an id',
      ({ belfry }) => belfry.schedules.putMany([{ id: 'a', every: '1h', job: 'work' }] as never),
      /putMany: entry 0 is .*; give pairs, as in putMany/,
    ],
    [
      'a schedule among pairs that is none',
      ({ belfry }) => belfry.schedules.putMany([['a', { every: '1h', job: 'work' }], undefined] as never),
      /putMany: entry 1 is "undefined"/,
    ],
    [
      'a pair without a schedule',
      ({ belfry }) => belfry.schedules.putMany([['a', undefined]] as never),
      /schedule "a": /,
    ],
    [
      'payloads alone',
      ({ job }) => job.enqueueMany(['eu', 'us'] as never),
      /item 0 is "eu"; give a list, as in enqueueMany/,
    ],
    ['schedules in a list', ({ belfry }) => belfry.schedules.apply([] as never), /give an object, as in apply/],
    [
      'options before the work',
      ({ belfry }) => belfry.withLock('l', { ttl: '5s' } as never),
      /work is .* must be a function/,
    ],
    [
      'an event that does not exist',
      async ({ belfry }) => belfry.on('run:done' as never, () => {}),
      /no event "run:done"; there are .*run:succeeded/,
    ],
    [
      'a tick in seconds',
      ({ belfry }) => belfry.runs.list({ tick: 1_772_355_600 }),
      /runs\.list\(\): instant "1772355600" looks like seconds/,
    ],
    ['a state that does not exist', ({ belfry }) => belfry.runs.list({ state: 'done' as never }), /state is "done"/],
    [
      'a filter that does not exist',
      ({ belfry }) => belfry.runs.list({ jobs: 'work' } as never),
      /"jobs" is not an option; did you mean "job"\?/,
    ],
    [
      'a signal that cannot be caught',
      async () => createBelfry({ store: memory(), signals: ['SIGKILL' as never] }),
      /signals names "SIGKILL"/,
    ],
  ])('%s', async (_, act, message) => {
    const kit = (await kits.memory) as Kit
    await expect(act(kit)).rejects.toThrow(expect.objectContaining({ message: expect.stringMatching(message) }))
  })
})
