import { expect } from 'vitest'
import { area, key, newRun, retryIn } from './scene.js'

export const enqueue = area('enqueue', {
  'a run is ready at once by default': async (scene) => {
    const id = await scene.enqueue({ payload: { a: 1 }, priority: 2, keep: 'failures', dedupe: 'd' })
    const run = await scene.run(id)
    expect(run).toMatchObject({
      ...{ id, origin: 'enqueue', state: 'ready', payload: { a: 1 }, priority: 2, keep: 'failures', dedupe: 'd' },
      ...{ attempt: 0, failures: 0, takeovers: 0 },
    })
    expect(run.readyAt).toBe(run.createdAt)
    expect(await scene.store.runs.get('unknown')).toBeUndefined()
  },

  'a run can be delayed by a duration or until an instant, which may have passed': async (scene) => {
    await scene.join()
    const now = await scene.store.now()
    const delayed = await scene.enqueue({ delayMs: 600 })
    const later = await scene.enqueue({ readyAt: now + 60_000 })
    const past = await scene.enqueue({ readyAt: now - 60_000 })
    expect((await scene.run(delayed)).readyAt).toBe((await scene.run(delayed)).createdAt + 600)
    const first = await scene.claimAll()
    expect(first.runs.map(({ id }) => id)).toEqual([past])
    expect(first.nextReadyAt).toBe((await scene.run(delayed)).readyAt)
    await scene.elapse(650)
    const second = await scene.claimAll()
    expect(second.runs.map(({ id }) => id)).toEqual([delayed])
    expect(second.nextReadyAt).toBe((await scene.run(later)).readyAt)
  },

  'the instant of a trigger is that of the call': async (scene) => {
    const id = await scene.enqueue({ origin: 'trigger', schedule: 'a' })
    const { tick, createdAt } = await scene.run(id)
    expect(tick).toBe(createdAt)
  },

  'a dedupe key refuses while its run is unfinished, delayed or between attempts too': async (scene) => {
    await scene.join()
    const first = await scene.enqueue({ dedupe: 'once', delayMs: 60_000 })
    expect(await scene.tryEnqueue({ dedupe: 'once' })).toEqual({ outcome: 'duplicate', run: first })
    await scene.store.runs.cancel(first)
    const second = await scene.enqueue({ dedupe: 'once' })
    const run = await scene.claimOne()
    expect(await scene.tryEnqueue({ dedupe: 'once' })).toEqual({ outcome: 'duplicate', run: second })
    await scene.settle(run, retryIn(60_000))
    expect(await scene.tryEnqueue({ dedupe: 'once' })).toEqual({ outcome: 'duplicate', run: second })
  },

  'a dedupe key is free again when its run has ended': async (scene) => {
    await scene.join()
    await scene.enqueue({ dedupe: 'once' })
    await scene.settle(await scene.claimOne())
    expect((await scene.tryEnqueue({ dedupe: 'once' })).outcome).toBe('enqueued')
  },

  'a dedupe key with `keyFor` refuses for that long after the end, whatever the history keeps': async (scene) => {
    await scene.join()
    const once = { dedupe: 'once', dedupeForMs: 600, keep: 'none' } as const
    const first = await scene.enqueue(once)
    await scene.settle(await scene.claimOne())
    expect(await scene.store.runs.get(first)).toBeUndefined()
    expect(await scene.tryEnqueue(once)).toEqual({ outcome: 'duplicate', run: first })
    await scene.store.runs.prune({ maxAgeMs: 0, maxRuns: 0, leaseAgeMs: 0, limit: 100 })
    expect(await scene.tryEnqueue(once)).toEqual({ outcome: 'duplicate', run: first })
    await scene.elapse(650)
    expect((await scene.tryEnqueue(once)).outcome).toBe('enqueued')
  },

  'jobs and sinks do not share dedupe keys': async (scene) => {
    await scene.enqueue({ dedupe: 'once' })
    expect((await scene.tryEnqueue({ dedupe: 'once', target: { job: 'other' } })).outcome).toBe('enqueued')
    expect((await scene.tryEnqueue({ dedupe: 'once', target: { sink: 'work' } })).outcome).toBe('enqueued')
  },

  'a batch dedupes within itself, and answers in order': async ({ store }) => {
    const results = await store.runs.enqueue([newRun({ dedupe: 'a' }), newRun({ dedupe: 'a' }), newRun()])
    expect(results.map(({ outcome }) => outcome)).toEqual(['enqueued', 'duplicate', 'enqueued'])
    expect(results[1]?.run).toBe(results[0]?.run)
    expect(new Set(results.map(({ run }) => run)).size).toBe(2)
  },

  'of many equal enqueues at once, one succeeds': async (scene) => {
    const results = await Promise.all(Array.from({ length: 20 }, () => scene.tryEnqueue({ dedupe: 'once' })))
    expect(results.filter(({ outcome }) => outcome === 'enqueued')).toHaveLength(1)
    expect(new Set(results.map(({ run }) => run)).size).toBe(1)
  },

  'a checked key refuses while as many runs as its limit are due or executing': async (scene) => {
    await scene.join()
    const exclusive = { key: key('k'), checkKey: true }
    const first = await scene.enqueue(exclusive)
    expect(await scene.tryEnqueue(exclusive)).toEqual({ outcome: 'busy', run: first })
    const run = await scene.claimOne()
    expect(await scene.tryEnqueue(exclusive)).toEqual({ outcome: 'busy', run: first })
    await scene.settle(run, retryIn(60_000))
    expect(await scene.tryEnqueue(exclusive)).toEqual({ outcome: 'busy', run: first })
    await scene.store.runs.cancel(first)
    expect((await scene.tryEnqueue(exclusive)).outcome).toBe('enqueued')
  },

  'a checked key counts up to its limit': async (scene) => {
    const pair = { key: key('k', { limit: 2 }), checkKey: true }
    await scene.enqueue(pair)
    expect(await scene.store.runs.available('k', 2)).toBe(true)
    await scene.enqueue(pair)
    expect(await scene.store.runs.available('k', 2)).toBe(false)
    expect((await scene.tryEnqueue(pair)).outcome).toBe('busy')
  },

  'an unchecked key refuses nothing': async (scene) => {
    await scene.enqueue({ key: key('k') })
    expect((await scene.tryEnqueue({ key: key('k') })).outcome).toBe('enqueued')
  },

  'delayed runs neither block a checked key nor are refused by it': async (scene) => {
    const later = { key: key('k'), checkKey: true, delayMs: 600 }
    const delayed = await scene.enqueue(later)
    expect(await scene.store.runs.available('k', 1)).toBe(true)
    const now = await scene.enqueue({ key: key('k'), checkKey: true })
    expect((await scene.tryEnqueue({ ...later, delayMs: 60_000 })).outcome).toBe('enqueued')
    await scene.store.runs.cancel(now)
    await scene.elapse(650)
    expect(await scene.tryEnqueue({ key: key('k'), checkKey: true })).toEqual({ outcome: 'busy', run: delayed })
    expect(await scene.store.runs.available('k', 1)).toBe(false)
  },

  'a delayed run that waits for others of its schedule counts against its key once it is due': async (scene) => {
    await scene.putTicks('a', [-10, 90_000_000])
    await scene.advance()
    const behind = { origin: 'trigger', schedule: 'a', overlap: 'queue-all', delayMs: 600 } as const
    const delayed = await scene.enqueue({ ...behind, key: key('k') })
    expect(await scene.stateOf(delayed)).toBe('waiting overlap')
    expect(await scene.store.runs.available('k', 1)).toBe(true)
    await scene.elapse(650)
    expect(await scene.store.runs.available('k', 1)).toBe(false)
    expect(await scene.tryEnqueue({ key: key('k'), checkKey: true })).toEqual({ outcome: 'busy', run: delayed })
    await scene.store.runs.cancel(delayed)
    expect(await scene.store.runs.available('k', 1)).toBe(true)
  },

  'of two enqueues of a checked key at the same instant, one is refused': async (scene) => {
    const readyAt = (await scene.store.now()) + 60_000
    const once = { key: key('k'), checkKey: true, readyAt }
    const first = await scene.enqueue(once)
    expect(await scene.tryEnqueue(once)).toEqual({ outcome: 'busy', run: first })
    expect((await scene.tryEnqueue({ ...once, readyAt: readyAt + 1 })).outcome).toBe('enqueued')
    await scene.store.runs.cancel(first)
    expect((await scene.tryEnqueue(once)).outcome).toBe('enqueued')
  },

  'asking whether a key is available changes nothing': async (scene) => {
    await scene.join()
    expect(await scene.store.runs.available('k', 1)).toBe(true)
    await scene.enqueue({ key: key('k') })
    expect(await scene.store.runs.available('k', 1)).toBe(false)
    expect(await scene.claim()).toHaveLength(1)
    expect(await scene.store.leases.inspect('k')).toHaveLength(1)
  },

  'a run without its key waits for the stamp': async (scene) => {
    await scene.join()
    const id = await scene.enqueue({ key: 'unstamped' })
    expect(await scene.stateOf(id)).toBe('waiting stamp')
    expect(await scene.claim()).toEqual([])
    const { items } = await scene.store.runs.list({ waitsFor: 'stamp', limit: 10 })
    expect(items.map((run) => run.id)).toEqual([id])
    await scene.store.runs.stamp([{ run: id, key: key('k') }])
    expect(await scene.run(id)).toMatchObject({ state: 'ready', key: key('k') })
    await scene.store.runs.stamp([{ run: id, key: key('another') }])
    expect((await scene.run(id)).key).toEqual(key('k'))
    expect(await scene.claim()).toHaveLength(1)
    expect((await scene.store.runs.list({ waitsFor: 'stamp', limit: 10 })).items).toEqual([])
  },

  'ticks of a schedule without its key wait for the stamp too': async (scene) => {
    await scene.putTicks('a', [-10, 90_000_000], { key: 'unstamped' })
    await scene.advance()
    expect(await scene.statesOf('a')).toEqual(['waiting stamp'])
  },

  'a caller’s transaction is used or refused, never ignored': async ({ store }) => {
    if (store.supports.transactions) return
    await expect(store.runs.enqueue([newRun()], {})).rejects.toMatchObject({ code: 'UNSUPPORTED' })
    expect((await store.runs.list({ limit: 10 })).items).toEqual([])
  },

  'runs are listed newest first, filtered, page by page': async (scene) => {
    await scene.join()
    const first = await scene.enqueue({ key: key('k') })
    const second = await scene.enqueue({ target: { job: 'other' } })
    const third = await scene.enqueue({ target: { sink: 'kafka' } })
    const trigger = await scene.enqueue({ origin: 'trigger', schedule: 'a', tick: 5 })
    const list = async (query: object) =>
      (await scene.store.runs.list({ limit: 10, ...query })).items.map(({ id }) => id)
    expect(await list({})).toEqual([trigger, third, second, first])
    expect(await list({ job: 'other' })).toEqual([second])
    expect(await list({ sink: 'kafka' })).toEqual([third])
    expect(await list({ key: 'k' })).toEqual([first])
    expect(await list({ schedule: 'a', tick: 5 })).toEqual([trigger])
    expect(await list({ schedule: 'a', tick: 6 })).toEqual([])
    const page = await scene.store.runs.list({ limit: 3 })
    expect(page.next).toBeDefined()
    expect(await list({ after: page.next })).toEqual([first])
    await scene.store.runs.cancel(third)
    expect(await list({ states: ['cancelled', 'failed'] })).toEqual([third])
  },

  'a list with a prefix has the runs of schedules with it and, without a schedule, of jobs and sinks with it': async (
    scene,
  ) => {
    const foreign = (over = {}) => scene.enqueue({ target: { job: 'b/vip' }, ...over })
    await foreign()
    const own = [
      await scene.enqueue({ target: { job: 'a/mail' } }),
      await scene.enqueue({ target: { sink: 'a/hooks' } }),
      await foreign({ origin: 'trigger', schedule: 'a/1', tick: 5 }),
      await scene.enqueue({ target: { job: 'a/\u{10ffff}' } }),
      await foreign({ origin: 'trigger', schedule: 'a/', tick: 5 }),
    ].reverse()
    await foreign({ origin: 'trigger', schedule: 'b/1', tick: 5, target: { job: 'a/mail' } })
    for (const job of ['a', 'b/a/', 'job:a/', 'A/']) await scene.enqueue({ target: { job } })
    const { list } = scene.store.runs
    expect((await list({ prefix: 'a/', limit: 10 })).items.map(({ id }) => id)).toEqual(own)
    expect((await list({ prefix: 'a/', states: ['ready'], job: 'b/vip', limit: 10 })).items).toHaveLength(2)
    expect((await list({ prefix: 'a/', schedule: 'b/1', limit: 10 })).items).toEqual([])
    // Runs of other owners do not change where a page ends.
    expect((await list({ prefix: 'a/', limit: own.length })).next).toBeUndefined()
    expect((await list({ prefix: 'a/', limit: own.length - 1 })).next).toBe(own.at(-2))
    expect(await list({ prefix: 'a/', states: ['failed'], limit: 1 })).toEqual({ items: [] })
  },

  'unfinished runs are counted by the prefix of their owner, up to a limit': async (scene) => {
    const { runs } = scene.store
    const counts = async (prefix: string) => [
      await runs.count({ prefix, limit: 100 }),
      await runs.count({ prefix, limit: 2 }),
    ]
    const mail = () => scene.enqueue({ target: { job: 'a/mail' } })
    const trigger = (over = {}) => scene.enqueue({ origin: 'trigger', schedule: 'a/1', tick: 5, ...over })
    const first = await mail()
    const second = await mail()
    await scene.enqueue({ target: { sink: 'a/hooks' }, delayMs: 600_000 })
    const triggered = await trigger()
    await trigger({ overlap: 'queue-all' })
    for (const target of [{ job: 'b/mail' }, { job: 'a' }, { sink: 'b/a/' }]) await scene.enqueue({ target })
    expect([await counts('a/'), await counts('b/'), await counts('c/')]).toEqual([
      [5, 2],
      [2, 2],
      [0, 0],
    ])
    expect(await runs.count({ prefix: '', limit: 100 })).toBe(8)
    await runs.cancel(first)
    expect(await counts('a/')).toEqual([4, 2])
    await runs.retry(first)
    expect(await counts('a/')).toEqual([5, 2])
    for (const run of [second, triggered]) await runs.cancel(run)
    expect(await counts('a/')).toEqual([3, 2])
    await expect(runs.count({ prefix: '', limit: 0 })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  },

  'ticks count as unfinished until they end, whether the history keeps them or not': async (scene) => {
    await scene.join()
    const count = () => scene.store.runs.count({ prefix: 'a', limit: 100 })
    await scene.putTicks('a', [-10], { keep: 'none' })
    await scene.advance()
    expect(await count()).toBe(1)
    await scene.settle(await scene.claimOne())
    expect(await count()).toBe(0)
    await scene.putTicks('b', [-10, 90_000_000])
    await scene.advance()
    expect(await scene.store.runs.count({ prefix: 'b', limit: 100 })).toBe(1)
    await scene.store.schedules.remove(['b'])
    expect(await scene.store.runs.count({ prefix: 'b', limit: 100 })).toBe(0)
  },

  'a list with a small `look` finds all runs, page by page': async (scene) => {
    const runs: string[] = []
    for (let at = 0; at < 7; at += 1) runs.push(await scene.enqueue({}))
    const cancelled = [runs[5], runs[3], runs[0]]
    for (const run of cancelled) await scene.store.runs.cancel(run ?? '')
    for (const [look, limit] of [
      [1, 10],
      [2, 1],
      [100, 2],
    ] as const) {
      const found: string[] = []
      for (let after: { after?: string } | undefined = {}; after !== undefined; ) {
        const { items, next } = await scene.store.runs.list({ states: ['cancelled'], look, limit, ...after })
        found.push(...items.map(({ id }) => id))
        after = next === undefined ? undefined : { after: next }
      }
      expect(found).toEqual(cancelled)
    }
  },
})
