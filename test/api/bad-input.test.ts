/** Invalid input throws an error that names the value, its place and a remedy, and leaves the store unchanged. */
import { describe, expect, it } from 'vitest'
import {
  type Belfry,
  type BelfryOptions,
  createBelfry,
  type JobOptions,
  type Json,
  type ScheduleFields,
  type ScheduleInput,
} from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

type Case = readonly [what: string, input: unknown, code: string, message: RegExp]

function nested(depth: number): Json {
  return depth === 0 ? 0 : [nested(depth - 1)]
}

function cyclic(): object {
  const loop: { self?: object } = {}
  loop.self = loop
  return loop
}

async function contents(belfry: Belfry) {
  const [schedules, runs, locks] = await Promise.all([belfry.schedules.list(), belfry.runs.list(), belfry.locks.list()])
  return { schedules, runs, locks }
}

/** An instance whose store holds one schedule, job, run and lock. */
async function populated() {
  const kit = createTestBelfry({ now: '2026-01-01T00:00:00Z' })
  const job = kit.belfry.job('mail', { exclusive: { by: ['to'] }, run: () => null })
  await kit.belfry.start()
  await kit.belfry.schedules.put('mail/hourly', { every: '1h', job })
  await job.enqueue({ to: 'ada' }, { in: '1h' })
  await kit.belfry.lock('held', { ttl: '1h' })
  return { ...kit, job }
}

const payloads: readonly Case[] = [
  [
    'more than 256 KiB',
    'x'.repeat(256 * 1024),
    'PAYLOAD_INVALID',
    /is 262146 bytes of JSON: at most 262144.*pass a reference/,
  ],
  [
    'a __proto__ key',
    JSON.parse('{"a":{"__proto__":{"admin":true}}}'),
    'PAYLOAD_INVALID',
    /\.a: the key "__proto__" is refused/,
  ],
  [
    'a __proto__ key from toJSON',
    { toJSON: () => JSON.parse('{"__proto__":1}') as unknown },
    'PAYLOAD_INVALID',
    /the key "__proto__" is refused/,
  ],
  ['deep nesting', nested(100), 'PAYLOAD_INVALID', /nested more than 64 deep/],
  ['a cycle', cyclic(), 'PAYLOAD_INVALID', /nested more than 64 deep/],
  ['a number that is NaN', { count: Number.NaN }, 'PAYLOAD_INVALID', /\.count: NaN is not a JSON number/],
  ['a bigint', { count: [1n] }, 'PAYLOAD_INVALID', /\.count\[0\]: a bigint is not JSON/],
  ['a function', { run: () => null }, 'PAYLOAD_INVALID', /\.run: a function is not JSON/],
  ['a map', { map: new Map() }, 'PAYLOAD_INVALID', /\.map: Map is not plain JSON/],
]

const names: readonly Case[] = [
  ['an empty name', '', 'NAME_INVALID', /it has 0 characters, and 1 to 255 are allowed/],
  ['a long name', 'x'.repeat(256), 'NAME_INVALID', /it has 256 characters/],
  ['a name that is a path step', '..', 'NAME_INVALID', /no path can name it/],
  ['white space around', ' a', 'NAME_INVALID', /begins or ends with white space/],
  ['control characters', 'a\nb', 'NAME_INVALID', /control characters/],
  ['no text', 7, 'NAME_INVALID', /must be text/],
]

describe('a payload', () => {
  it.each(payloads)('with %s is refused by enqueue, trigger and put', async (_, payload, code, message) => {
    const { belfry, job } = await populated()
    const before = await contents(belfry)
    const acts = [
      () => job.enqueue({ to: 'bob', payload } as Json),
      () => job.enqueueMany([{ payload: { to: 'carol' } }, { payload: payload as Json }]),
      () => belfry.schedules.trigger('mail/hourly', { payload }),
      () => belfry.schedules.put('mail/new', { every: '1h', job, payload }),
      () => belfry.schedules.put('mail/hourly', { every: '1h', job, payload }),
    ]
    for (const act of acts) {
      const refused = act()
      await expect(refused).rejects.toMatchObject({ code })
      if (code === 'PAYLOAD_INVALID' && !/bytes/.test(String(message))) await expect(refused).rejects.toThrow(message)
      await expect(refused).rejects.toThrow(/^payload of (job "mail"|a trigger of "mail\/hourly"|schedule "mail\/\w+")/)
    }
    await expect(job.enqueue(payload as Json)).rejects.toThrow(message)
    expect(await contents(belfry)).toEqual(before)
  })

  it('at the limits is accepted', async () => {
    const { belfry } = createTestBelfry()
    const job = belfry.job('mail', { run: () => null })
    await belfry.start()
    for (const payload of ['x'.repeat(256 * 1024 - 2), nested(64), { constructor: 1, prototype: 2 }, []]) {
      expect((await job.enqueue(payload)).outcome).toBe('enqueued')
    }
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })
})

describe('a name', () => {
  it.each(names)('that is %s is refused everywhere', async (_, given, code, message) => {
    const { belfry, job } = await populated()
    const name = given as string
    const before = await contents(belfry)
    const acts = [
      () => belfry.schedules.put(name, { every: '1h', job }),
      () => belfry.schedules.put('a', { every: '1h', job: name }),
      () => belfry.schedules.put('a', { every: '1h', to: name }),
      () => belfry.lock(name),
      () => belfry.withLock(name, () => null),
      async () => belfry.locks.reset(name),
      () => job.enqueue({ to: 'bob' }, { key: name }),
    ]
    for (const act of acts) {
      const refused = act()
      await expect(refused).rejects.toMatchObject({ code })
      await expect(refused).rejects.toThrow(message)
    }
    for (const make of [
      () => createTestBelfry().belfry.job(name, { run: () => null }),
      () => createTestBelfry().belfry.job('a', { run: () => null, exclusive: { name } }),
      () => createTestBelfry({ app: name }),
      () => createTestBelfry({ release: name }),
    ]) {
      expect(make).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }))
    }
    expect(await contents(belfry)).toEqual(before)
  })

  it('of 1 and of 255 characters is accepted', async () => {
    const { belfry, job } = await populated()
    for (const name of ['a', 'é'.repeat(255), 'a b/c:d"e']) {
      expect(await belfry.lock(name)).toBeDefined()
      expect(await belfry.schedules.put(name, { every: '1h', job })).toMatchObject({ id: name })
    }
  })
})

const schedules: readonly (readonly [string, ScheduleFields & object, string, RegExp])[] = [
  ['no timeline', { job: 'mail' }, 'OPTION_INVALID', /give one of cron, every or at/],
  ['two timelines', { cron: '* * * * *', every: '1h', job: 'mail' }, 'OPTION_INVALID', /not cron and every/],
  ['no target', { every: '1h' }, 'OPTION_INVALID', /give a job, or a sink/],
  ['two targets', { every: '1h', job: 'mail', to: 'kafka' }, 'OPTION_INVALID', /not both/],
  [
    'sink options for a job',
    { every: '1h', job: 'mail', toOptions: {} },
    'OPTION_INVALID',
    /toOptions belong to a sink/,
  ],
  [
    'a zone for an interval',
    { every: '1h', timezone: 'Europe/Berlin', job: 'mail' },
    'OPTION_INVALID',
    /timezone does not apply/,
  ],
  [
    'dst for an interval',
    { every: '1h', dst: { gap: 'skip' }, job: 'mail' },
    'OPTION_INVALID',
    /dst applies to cron only/,
  ],
  [
    'an end before its start',
    { every: '1h', startsAt: '2026-02-01T00:00:00Z', endsAt: '2026-01-01T00:00:00Z', job: 'mail' },
    'OPTION_INVALID',
    /endsAt lies before startsAt/,
  ],
  [
    'null for overlap',
    { every: '1h', overlap: null as never, job: 'mail' },
    'OPTION_INVALID',
    /overlap is "null"; allowed are/,
  ],
  ['null for missed', { every: '1h', missed: null as never, job: 'mail' }, 'OPTION_INVALID', /missed/],
  [
    'null for a priority',
    { every: '1h', priority: null as never, job: 'mail' },
    'OPTION_INVALID',
    /priority is "null"/,
  ],
  [
    'within under skip',
    { every: '1h', missed: { policy: 'skip', within: '1h' }, job: 'mail' },
    'OPTION_INVALID',
    /within says nothing under policy skip: remove it/,
  ],
  [
    'max under latest',
    { every: '1h', missed: { policy: 'latest', max: 5 }, job: 'mail' },
    'OPTION_INVALID',
    /max says nothing under policy latest/,
  ],
  [
    'no times',
    { every: '1h', times: 0, job: 'mail' },
    'OPTION_INVALID',
    /times is "0"; it must be a whole number from 1/,
  ],
  ['a fractional priority', { every: '1h', priority: 1.5, job: 'mail' }, 'OPTION_INVALID', /priority is "1.5"/],
  ['an interval under a second', { every: '500ms', job: 'mail' }, 'INTERVAL_TOO_SHORT', /./],
  ['a broken expression', { cron: '0 25 * * *', job: 'mail' }, 'EXPRESSION_OUT_OF_RANGE', /./],
  ['an expression that never fires', { cron: '0 0 30 2 *', job: 'mail' }, 'EXPRESSION_NEVER_FIRES', /./],
  [
    'instants that have passed',
    { at: '2020-01-01T00:00:00Z', job: 'mail' },
    'OPTION_INVALID',
    /would never fire: its timeline has no tick after 2026-01-01/,
  ],
  ['an unknown zone', { cron: '0 9 * * *', timezone: 'Mars/Base', job: 'mail' }, 'ZONE_UNKNOWN', /Mars\/Base/],
]

const odd: readonly Case[] = [
  [
    'an unknown option',
    { every: '1h', job: 'mail', overlaps: 'skip' },
    'OPTION_INVALID',
    /"overlaps" is not an option; did you mean "overlap"\?/,
  ],
  [
    'an unknown overlap',
    { every: '1h', job: 'mail', overlap: 'queue' },
    'OPTION_INVALID',
    /overlap is "queue"; allowed are allow, skip/,
  ],
  [
    'an unknown missed policy',
    { every: '1h', job: 'mail', missed: 'some' },
    'OPTION_INVALID',
    /missed.policy is "some"; allowed are skip, latest, all/,
  ],
  [
    'an unknown keep',
    { every: '1h', job: 'mail', keep: 'some' },
    'OPTION_INVALID',
    /keep is "some"; allowed are all, failures, none/,
  ],
  ['no object', null, 'OPTION_INVALID', /options must be an object, not "null"/],
]

describe('a schedule', () => {
  it.each([...schedules, ...odd])(
    'with %s is refused by put, putMany, apply and start',
    async (_, input, code, message) => {
      const { belfry, instance } = await populated()
      const schedule = input as ScheduleFields
      const before = await contents(belfry)
      const declaring = instance()
      declaring.schedule('good', { every: '1h', job: 'mail' })
      declaring.schedule('bad', schedule as ScheduleInput)
      for (const act of [
        () => belfry.schedules.put('bad', schedule),
        () =>
          belfry.schedules.putMany([
            ['good', { every: '1h', job: 'mail' }],
            ['bad', schedule],
          ]),
        () =>
          belfry.schedules.apply({ good: { every: '1h', job: 'mail' }, bad: schedule }, { prune: true, prefix: '' }),
        () => declaring.start(),
      ]) {
        const refused = act()
        await expect(refused).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
        await expect(refused).rejects.toThrow(/^schedule "bad"/)
      }
      expect(await contents(belfry)).toEqual(before)
    },
  )
})

const jobs: readonly (readonly [string, object, RegExp, string?])[] = [
  ['no handler', {}, /run must be a function/],
  ['no attempts', { retry: { attempts: 0 } }, /retry.attempts is "0"; it must be a whole number of at least 1/],
  [
    'an unknown backoff',
    { retry: { backoff: 'linear' } },
    /retry.backoff is "linear"; allowed are fixed, exponential or a function/,
  ],
  [
    'a delay beside a backoff function',
    { retry: { backoff: () => 1, delay: '1s' } },
    /delay and maxDelay say nothing: remove them/,
  ],
  ['a limit of zero', { exclusive: { limit: 0 } }, /exclusive.limit is "0"/],
  [
    'an infinite limit',
    { exclusive: { limit: Number.POSITIVE_INFINITY } },
    /exclusive.limit is "Infinity".*from 1 to 1000000/,
  ],
  ['an unknown whenBusy', { exclusive: { whenBusy: 'queue' } }, /whenBusy is "queue"; allowed are skip and wait/],
  ['no paths', { exclusive: { by: [] } }, /exclusive.by must be a list of property paths such as/],
  ['an unknown keep', { keep: 'some' }, /keep is "some"; allowed are all, failures, none/],
  ['no timeout', { timeout: 0 }, /timeout must be longer than 0/],
  ['a broken timeout', { timeout: 'long' }, /duration "long" is not understood/, 'DURATION_SYNTAX'],
  ['a broken delay', { retry: { delay: '1mo' } }, /1mo/, 'DURATION_CALENDAR_UNIT'],
  ['half a slot', { concurrency: 0.5 }, /concurrency is "0.5"/],
]

describe('a job', () => {
  it.each(jobs.map(([what, options, message, code = 'OPTION_INVALID']) => [what, options, message, code] as const))(
    'with %s is refused when it is defined, and stays undefined',
    async (_, options, message, code) => {
      const { belfry } = createTestBelfry()
      const complete = Object.keys(options).length === 0 ? options : { run: () => null, ...options }
      expect(() => belfry.job('mail', complete as JobOptions<Json>)).toThrow(
        expect.objectContaining({ code, message: expect.stringMatching(message) }),
      )
      expect(() => belfry.job('mail', complete as JobOptions<Json>)).toThrow(/^job "mail": /)
      expect(belfry.job('mail', { run: () => null }).name).toBe('mail')
    },
  )

  it('that `jobs` names without a definition stops start(), and start() writes nothing', async () => {
    const { belfry, store } = createTestBelfry({ jobs: ['mail', 'nobody'] })
    belfry.job('mail', { run: () => null })
    belfry.schedule('mail/hourly', { every: '1h', job: 'mail' })
    await expect(belfry.start()).rejects.toMatchObject({
      code: 'JOB_UNKNOWN',
      message: 'jobs names "nobody", which is not defined: define it with belfry.job() before start()',
    })
    expect((await store.schedules.list({ limit: 10 })).items).toEqual([])
    expect(await store.instances.list()).toEqual([])
    // After the missing job is defined, the same instance starts.
    belfry.job('nobody', { run: () => null })
    await belfry.start()
    expect((await store.schedules.list({ limit: 10 })).items).toHaveLength(1)
  })
})

describe('an enqueue', () => {
  it.each([
    ['in and at', { in: '1h', at: '2026-01-01T00:00:00Z' }, 'OPTION_INVALID', /give `in` or `at`, not both/],
    ['keyFor without a key', { keyFor: '1d' }, 'OPTION_INVALID', /`keyFor` needs a `key`/],
    ['a fractional priority', { priority: 0.5 }, 'OPTION_INVALID', /priority is 0.5; it must be a whole number/],
    ['a broken delay', { in: 'soon' }, 'DURATION_SYNTAX', /^enqueue of job "mail": duration "soon".*write "15m"/],
    ['a negative delay', { in: -1 }, 'DURATION_OUT_OF_RANGE', /^enqueue of job "mail": .*-1/],
    ['a broken instant', { at: 'tomorrow' }, 'INSTANT_SYNTAX', /^enqueue of job "mail": .*tomorrow/],
  ])('with %s is refused', async (_, options, code, message) => {
    const { belfry, job } = await populated()
    const before = await contents(belfry)
    const refused = job.enqueue({ to: 'bob' }, options)
    await expect(refused).rejects.toMatchObject({ code })
    await expect(refused).rejects.toThrow(message)
    expect(await contents(belfry)).toEqual(before)
  })
})

describe('a lock', () => {
  it.each([
    [
      'a heartbeat over a third of its TTL',
      { ttl: '3s', heartbeat: '1500ms' },
      'OPTION_INVALID',
      /heartbeat of 1500 ms is too slow for a lease of 3000 ms/,
    ],
    [
      'a timeout beyond a TTL that is not renewed',
      { ttl: '3s', renew: false, timeout: '4s' },
      'OPTION_INVALID',
      /timeout is longer than its ttl of 3000 ms/,
    ],
    ['a timeout without effect', { timeout: '4s' }, 'OPTION_INVALID', /timeout belongs to renew: false/],
    [
      'a heartbeat without effect',
      { ttl: '30s', renew: false, heartbeat: '1s' },
      'OPTION_INVALID',
      /heartbeat says nothing with renew: false/,
    ],
    ['no TTL', { ttl: 0 }, 'OPTION_INVALID', /ttl must be longer than 0/],
    ['no permits', { permits: 0 }, 'OPTION_INVALID', /permits is 0; it must be a whole number/],
    ['a broken TTL', { ttl: 'long' }, 'DURATION_SYNTAX', /^lock "a": duration "long"/],
  ])('with %s is refused', async (_, options, code, message) => {
    const { belfry } = await populated()
    const before = await contents(belfry)
    const refused = belfry.lock('a', options)
    await expect(refused).rejects.toMatchObject({ code })
    await expect(refused).rejects.toThrow(message)
    expect(await contents(belfry)).toEqual(before)
  })
})

describe('createBelfry', () => {
  it.each([
    ['no store', { store: undefined }, /store is missing: pass memory\(\)/],
    ['an unknown role', { roles: ['lead'] }, /role "lead" is unknown: allowed are tick and run/],
    ['no concurrency', { concurrency: 0 }, /concurrency is 0: it must be a whole number of at least 1/],
    ['no batch', { batch: 0 }, /batch is 0/],
    ['a lease that is too short', { lease: '50ms' }, /lease is 50 ms: at least 100 ms/],
    [
      'a history that is not a number',
      { history: { maxRuns: Number.NaN } },
      /history.maxRuns is NaN: it must be a whole number of at least 0/,
    ],
    ['a negative history', { history: { maxRuns: -1 } }, /history.maxRuns is -1/],
  ])('with %s is refused', (_, options, message) => {
    const make = () => createBelfry({ store: memory(), ...options } as unknown as BelfryOptions)
    expect(make).toThrow(expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringMatching(message) }))
    expect(make).toThrow(/^createBelfry: /)
  })
})
