/** Concurrent puts share Lua scripts, but each has its own outcome. */
import { expect, it } from 'vitest'
import { parseSchedule } from '../../src/api/schedules/schedule-input.js'
import type { Store } from '../../src/core/store.js'
import { freshRedis } from '../servers/fresh-redis.js'

async function withStore(work: (store: Store) => Promise<void>): Promise<void> {
  const redis = await freshRedis()
  await redis.store.open()
  await work(redis.store)
  await redis.store.close()
  await redis.close()
}

const write = (id: string, every = '1h') => ({ id, definition: parseSchedule(id, { every, job: 'j' }, 10_000) })

it('concurrent puts all succeed, each with its own answer', async () => {
  await withStore(async (store) => {
    const ids = Array.from({ length: 120 }, (_, at) => `s${at}`)
    const answers = await Promise.all(ids.map((id) => store.schedules.put([write(id)])))
    expect(answers.map(([answer]) => answer?.schedule?.id)).toEqual(ids)
    expect(new Set(answers.map(([answer]) => answer?.schedule?.version)).size).toBe(ids.length)
    const stored = await Promise.all(ids.map((id) => store.schedules.get(id)))
    expect(stored).toEqual(answers.map(([answer]) => answer?.schedule))
  })
})

it('of many callers that create the same schedule at once, one does', async () => {
  await withStore(async (store) => {
    const writes = Array.from({ length: 40 }, (_, at) => ({ ...write('same', `${at + 1}h`), ifVersion: 0 }))
    const answers = (await Promise.all(writes.map((each) => store.schedules.put([each])))).flat()
    expect(answers.filter(({ outcome }) => outcome === 'created')).toHaveLength(1)
    expect(answers.filter(({ outcome }) => outcome === 'conflict')).toHaveLength(39)
  })
})

it('concurrent puts of one schedule are applied in order', async () => {
  await withStore(async (store) => {
    const writes = Array.from({ length: 10 }, (_, at) => write('same', `${at + 1}h`))
    const answers = (await Promise.all(writes.map((each) => store.schedules.put([each])))).flat()
    expect(answers.map(({ outcome }) => outcome)).toEqual(['created', ...Array.from({ length: 9 }, () => 'updated')])
    expect((await store.schedules.get('same'))?.definition.timeline).toEqual({ every: 36_000_000 })
  })
})

it('a put that can never fire fails alone', async () => {
  await withStore(async (store) => {
    const past = { ...write('never'), definition: { ...write('never').definition, timeline: { at: [1] } } }
    const puts = [store.schedules.put([write('a')]), store.schedules.put([past]), store.schedules.put([write('b')])]
    const outcomes = await Promise.allSettled(puts)
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await store.schedules.get('never')).toBeUndefined()
  })
})
