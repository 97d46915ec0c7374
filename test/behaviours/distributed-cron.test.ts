/** Behaviours of a distributed cron on a delay queue, and of the cases that such a design usually leaves open. */
import { expect } from 'vitest'
import type { ScheduleFields } from '../../src/api/schedules/schedule-input.js'
import type { Belfry } from '../../src/belfry.js'
import { isFinished, type Run } from '../../src/core/runs/run.js'
import type { SkipRange } from '../../src/core/schedules/plan.js'
import { plan } from '../../src/core/schedules/plan.js'
import type { Delivery, Sink, SinkMessage } from '../../src/core/sink.js'
import type { Store } from '../../src/core/store.js'
import { behaviours, type InstanceOptions, type TestBed } from './test-bed.js'

const SECOND_MS = 1_000
const HOUR_MS = 3_600_000

behaviours('Distributed cron', (behaviour) => {
  behaviour(
    'D1',
    '`@every 1h`, cron expressions and `@at <time>` lists are accepted; each tick emits `{ id: "<schedule>-<unix tick>", generated_at, schedule_id, payload }`; `generated_at` is the nominal tick (ISO 8601, UTC), not the time of publishing; all four fields are the same in every retry.',
    async (bed) => {
      const orders = brokenAtFirst(1)
      const belfry = await startWith(bed, { sinks: { orders } })
      const unix = Math.floor((await bed.now()) / SECOND_MS) + 2
      const payload = { user: 1234, type: 'renewal_reminder' }
      const common = { to: 'orders', payload, times: 1 }
      const every = await belfry.schedules.put('every', { ...common, cron: '@every 1s' })
      const cron = await belfry.schedules.put('cron', { ...common, cron: '* * * * * *' })
      const at = await belfry.schedules.put('at', { ...common, cron: `@at ${unix} ${unix + 1}`, times: 2 })
      await bed.until(() => orders.delivered.length >= 4, 'four events')
      const ticks = [
        ['every', every.createdAt + SECOND_MS],
        ['cron', Math.floor(cron.createdAt / SECOND_MS) * SECOND_MS + SECOND_MS],
        ['at', at.next?.getTime() ?? 0],
        ['at', unix * SECOND_MS + SECOND_MS],
      ] as const
      const expected = ticks.map(([schedule_id, tick]) => ({
        id: `${schedule_id}-${Math.floor(tick / SECOND_MS)}`,
        generated_at: new Date(tick).toISOString(),
        schedule_id,
        payload,
      }))
      expect(at.next?.getTime()).toBe(unix * SECOND_MS)
      expect(byId(orders.delivered.map(event))).toEqual(byId(expected))
      expect(byId(orders.refused.map(event))).toEqual(byId(expected))
    },
  )

  behaviour(
    'D1',
    '`@every 1h`, cron expressions and `@at <time>` lists are accepted. (anything else is refused)',
    async (bed) => {
      const belfry = await startWith(bed, { roles: [] })
      const put = (input: ScheduleFields) => belfry.schedules.put('bad', { to: 'orders', ...input })
      await expect(put({ cron: '@every soon' })).rejects.toThrow(/schedule "bad"/)
      await expect(put({ cron: '61 * * * *' })).rejects.toThrow(/schedule "bad"/)
      await expect(put({ cron: '@at yesterday' })).rejects.toThrow(/schedule "bad"/)
      await expect(put({ cron: '@at 2001-01-01T00:00:00Z' })).rejects.toThrow(/never fire/)
      expect(await belfry.schedules.get('bad')).toBeUndefined()
    },
  )

  behaviour(
    'D2',
    'The first tick of `@every` is creation + interval; every next tick is computed from the nominal tick, never from "now".',
    async (bed) => {
      const { belfry, fired } = await startChimer(bed, { lookahead: 0 })
      const created = await belfry.schedules.put('bell', { cron: '@every 1s', job: 'chime' })
      expect(created.next?.getTime()).toBe(created.createdAt + SECOND_MS)
      for (const pauseMs of [300, 450, 650]) {
        const seen = fired.length
        await bed.until(() => fired.length > seen, 'another tick')
        // However late an instance is, the ticks stay at their instants.
        bed.hold(belfry)
        await bed.elapse(pauseMs)
        bed.resume(belfry)
      }
      const seen = fired.length
      await bed.until(() => fired.length > seen, 'a last tick')
      expect(sorted(fired)).toEqual(ticksAfter(created.createdAt, fired.length))
    },
  )

  behaviour(
    'D3',
    'Items whose time has come fire, including those enqueued with a time in the past; after an outage late rather than never (subject to the missed policy). (a time in the past)',
    async (bed) => {
      const belfry = await bed.instance()
      const done: string[] = []
      const job = belfry.job<string>('note', { run: ({ payload }) => void done.push(payload) })
      await belfry.start()
      const now = await bed.now()
      await job.enqueue('a day ago', { at: new Date(now - 24 * HOUR_MS) })
      await job.enqueue('just now', { at: new Date(now) })
      await job.enqueue('soon', { at: new Date(now + 700) })
      await bed.until(() => done.length >= 2, 'what was due')
      expect([...done].sort()).toEqual(['a day ago', 'just now'])
      await bed.until(() => done.length >= 3, 'what came due')
      const [last] = (await bed.runs({ job: 'note' })).filter(({ payload }) => payload === 'soon')
      expect(last?.startedAt).toBeGreaterThanOrEqual(now + 700)
    },
  )

  behaviour(
    'D3',
    'Items whose time has come fire; after an outage late rather than never (subject to the missed policy). (an outage)',
    async (bed) => {
      const { belfry: before } = await startChimer(bed, { grace: '500ms', lookahead: 0 })
      const common = { every: '1s', job: 'chime', times: 3 }
      const { anchor } = await before.schedules.put('all', { ...common, missed: 'all' })
      const latest = await before.schedules.put('latest', { ...common, missed: 'latest', times: 1 })
      const at = new Date(anchor + SECOND_MS)
      await before.schedules.put('skip', { at: [at, new Date(anchor + HOUR_MS)], job: 'chime', missed: 'skip' })
      await bed.settled(before.stop())
      await bed.until(async () => (await bed.now()) > anchor + 3_600, 'the outage to have lasted')
      const { belfry: after } = await startChimer(bed, { grace: '500ms', lookahead: 0 })
      await bed.until(async () => (await ended(bed, 'all')) === 3 && (await ended(bed, 'latest')) === 1, 'them all')
      expect(await recordedTicks(bed, 'all')).toEqual(ticksAfter(anchor, 3))
      const [newest] = await bed.runs({ schedule: 'latest' })
      const due = Math.floor(((newest?.createdAt ?? 0) - latest.anchor) / SECOND_MS)
      expect(newest?.tick).toBe(latest.anchor + due * SECOND_MS)
      expect(await skips(bed, 'latest')).toMatchObject([{ count: due - 1, reason: 'missed' }])
      expect(await recordedTicks(bed, 'skip')).toEqual([])
      expect(await after.schedules.explain('skip', at)).toMatchObject({ status: 'skipped', reason: 'missed' })
    },
  )

  behaviour(
    'D4',
    'Changing the expression invalidates ticks of the old timeline: none is claimed after the update is acknowledged.',
    async (bed) => {
      const fired: number[] = []
      const instances: Belfry[] = []
      for (let number = 0; number < 3; number += 1) {
        instances.push((await startChimer(bed, { lookahead: '3s', fired })).belfry)
      }
      const [first, second] = instances as [Belfry, Belfry]
      const bells = Array.from({ length: 10 }, (_, number) => `bell/${number}`)
      for (const id of bells) await first.schedules.put(id, { every: '1s', job: 'chime' })
      await bed.until(() => fired.length >= bells.length, 'a first tick of all')
      const changed = await Promise.all(
        bells.map((id) => second.schedules.put(id, { every: '1s', startsAt: '2030-01-01T00:00:00Z', job: 'chime' })),
      )
      await bed.elapse(2_500)
      for (const { id, updatedAt } of changed) {
        const runs = await bed.runs({ schedule: id })
        expect(runs.length).toBeGreaterThan(0)
        for (const run of runs) {
          if (run.state === 'skipped') expect(run.reason).toBe('replaced')
          else expect(run.startedAt).toBeLessThanOrEqual(updatedAt)
        }
      }
    },
  )

  behaviour(
    'D4',
    'Changing the expression invalidates ticks of the old timeline. (a due tick that was not yet claimed)',
    async (bed) => {
      const { belfry: recorder } = await startChimer(bed, { roles: ['tick'] })
      const { anchor } = await recorder.schedules.put('bell', { every: '1s', job: 'chime' })
      await bed.until(async () => (await bed.now()) >= anchor + SECOND_MS, 'the tick to be due')
      await bed.until(async () => (await recordedTicks(bed, 'bell')).length >= 1, 'its recording')
      await recorder.schedules.put('bell', { every: '1h', job: 'chime' })
      const { fired } = await startChimer(bed)
      await bed.elapse(1_200)
      expect(fired).toEqual([])
      expect(await recorder.schedules.explain('bell', new Date(anchor + SECOND_MS))).toMatchObject({
        status: 'skipped',
        reason: 'replaced',
      })
    },
  )

  behaviour(
    'D4',
    'Changing the expression invalidates ticks of the old timeline: none is claimed after the update is acknowledged. (in a race with claims)',
    async (bed) => {
      const { belfry } = await startChimer(bed, { roles: [] })
      const workers = await joinByHand(bed, 3)
      const bells = Array.from({ length: 12 }, (_, number) => `bell/${number}`)
      const at = new Date(await bed.now())
      for (const id of bells) await belfry.schedules.put(id, { at, job: 'chime' })
      await bed.store.schedules.advance({ limit: 100, lookaheadMs: 0, plan })
      const claims = workers.map((worker) => worker.claim(2))
      const puts = bells.map((id) => belfry.schedules.put(id, { every: '1h', job: 'chime' }))
      await Promise.all([...claims, ...puts])
      const late = await Promise.all(workers.map((worker) => worker.claim(10)))
      expect(late.flat()).toEqual([])
      const claimed = (await Promise.all(claims)).flat().map(({ id }) => id)
      for (const id of bells) {
        const [run] = await bed.runs({ schedule: id })
        expect(run?.state).toBe(claimed.includes(run?.id ?? '') ? 'running' : 'skipped')
      }
    },
  )

  behaviour(
    'D5',
    'Deleting stops firing; orphans are ignored. Delete-and-recreate with the same id never revives old ticks.',
    async (bed) => {
      const { belfry, fired } = await startChimer(bed, { lookahead: '3s' })
      const first = await belfry.schedules.put('bell', { every: '1s', job: 'chime' })
      await bed.until(() => fired.length >= 1, 'the first tick')
      expect(await belfry.schedules.remove('bell')).toBe(true)
      const seen = fired.length
      await bed.elapse(1_500)
      expect(fired.length).toBe(seen)
      const second = await belfry.schedules.put('bell', { every: '1h', job: 'chime' })
      await bed.elapse(1_500)
      expect(fired.length).toBe(seen)
      expect(second.version).toBeGreaterThan(first.version)
      expect(second.next?.getTime()).toBe(second.createdAt + HOUR_MS)
      expect(await belfry.schedules.remove('bell')).toBe(true)
      expect(await belfry.schedules.remove('bell')).toBe(false)
    },
  )

  behaviour(
    'D5',
    'Deleting stops firing; orphans are ignored. Delete-and-recreate with the same id never revives old ticks. (orphans of every kind)',
    async (bed) => {
      const { belfry: recorder } = await startChimer(bed, { roles: ['tick'], lookahead: '5s' })
      const at = new Date((await bed.now()) + 500)
      const ahead = new Date(at.getTime() + 2_500)
      await recorder.schedules.put('bell', { at: [at, ahead], job: 'chime' })
      await bed.until(async () => (await recordedTicks(bed, 'bell')).length === 2, 'both to be recorded')
      await bed.until(async () => (await bed.now()) >= at.getTime(), 'one of them to be due')
      await recorder.schedules.remove('bell')
      // Puts the same list again while the due tick is still within its grace and the other is in the future.
      await recorder.schedules.put('bell', { at: [at, ahead], job: 'chime' })
      const { fired } = await startChimer(bed)
      await bed.until(() => fired.length > 0, 'the tick of the new schedule')
      await bed.elapse(500)
      expect(fired).toEqual([ahead.getTime()])
      const [old] = await bed.runs({ schedule: 'bell' })
      expect(old).toMatchObject({ tick: at.getTime(), state: 'skipped', reason: 'removed' })
    },
  )

  behaviour('D5', 'Deleting stops firing; orphans are ignored. (a run between two attempts)', async (bed) => {
    const { belfry } = await startChimer(bed)
    let attempts = 0
    const failing = await bed.instance()
    failing.job('doomed', {
      retry: { backoff: 'fixed', delay: '500ms', attempts: 5 },
      run: () => {
        attempts += 1
        throw new Error('not today')
      },
    })
    await failing.start()
    await failing.schedules.put('bell', { at: new Date((await bed.now()) + 100), job: 'doomed' })
    await bed.until(async () => attempts === 1 && (await stateOf(bed, 'bell')) === 'ready', 'a first attempt')
    await belfry.schedules.remove('bell')
    await bed.elapse(1_200)
    expect(attempts).toBe(1)
    expect(await stateOf(bed, 'bell')).toBe('cancelled')
  })

  behaviour('D6', 'A publish that fails is retried with the same event id.', async (bed) => {
    const orders = brokenAtFirst(2)
    const belfry = await startWith(bed, { sinks: { orders } })
    const at = new Date((await bed.now()) + 300)
    await belfry.schedules.put('bell', { at, to: 'orders', payload: 1 })
    await bed.until(() => orders.delivered.length >= 1, 'the delivery')
    const id = `bell-${Math.floor(at.getTime() / SECOND_MS)}`
    expect([...orders.refused, ...orders.delivered].map((message) => [message.id, message.attempt])).toEqual([
      [id, 1],
      [id, 2],
      [id, 3],
    ])
    await bed.until(async () => (await stateOf(bed, 'bell')) === 'succeeded', 'the run to end')
    await bed.elapse(500)
    expect(orders.delivered).toHaveLength(1)
    expect(await bed.runs({ schedule: 'bell' })).toMatchObject([{ attempt: 3 }])
  })

  behaviour('D6', 'A publish that fails is retried with the same event id. (one message of a batch)', async (bed) => {
    const fates = new Map<string, number>()
    const delivered: string[] = []
    const orders: Sink = {
      async deliver(messages) {
        return messages.map(({ id, schedule_id }): Delivery => {
          const attempts = (fates.get(id) ?? 0) + 1
          fates.set(id, attempts)
          if (schedule_id === 'bad' && attempts === 1) return { delivered: false, error: new Error('no leader') }
          delivered.push(id)
          return { delivered: true }
        })
      },
    }
    const belfry = await startWith(bed, { sinks: { orders } })
    const at = new Date((await bed.now()) + 300)
    const unix = Math.floor(at.getTime() / SECOND_MS)
    for (const id of ['good', 'bad', 'fine']) await belfry.schedules.put(id, { at, to: 'orders' })
    await bed.until(() => delivered.length >= 3, 'all to be delivered')
    expect([...fates].sort()).toEqual([
      [`bad-${unix}`, 2],
      [`fine-${unix}`, 1],
      [`good-${unix}`, 1],
    ])
  })

  behaviour(
    'D7',
    'Create never leaves a saved schedule without a pending tick, nor a pending tick without a schedule.',
    async (bed) => {
      const { belfry: client } = await startChimer(bed, { roles: [] })
      const ids = Array.from({ length: 30 }, (_, number) => `bell/${number}`)
      const puts = ids.map((id) => client.schedules.put(id, { every: '1s', job: 'chime', times: 1 }))
      await Promise.race([puts[10], puts[11]])
      bed.crash(client)
      // A remote store still executes the calls that were sent before the crash, so the test waits for them.
      await bed.elapse(0)
      const { fired } = await startChimer(bed)
      const saved = (await bed.store.schedules.list({ prefix: 'bell/', limit: 100 })).items
      expect(saved.length).toBeGreaterThanOrEqual(1)
      await bed.until(() => fired.length >= saved.length, 'each saved schedule to fire')
      await bed.elapse(300)
      const runs = await bed.runs({ job: 'chime' })
      expect(runs.map(({ schedule }) => schedule).sort()).toEqual(saved.map(({ id }) => id).sort())
    },
  )

  behaviour(
    'D7',
    'Create never leaves a saved schedule without a pending tick, nor a pending tick without a schedule. (refused, or repeated)',
    async (bed) => {
      const { belfry } = await startChimer(bed, { roles: [] })
      const never = { cron: '@at 2001-01-01T00:00:00Z', job: 'chime' }
      const entries: [string, ScheduleFields][] = [
        ['good', { every: '1h', job: 'chime' }],
        ['never', never],
      ]
      await expect(belfry.schedules.putMany(entries)).rejects.toThrow(/never fire/)
      expect((await belfry.schedules.list()).items).toEqual([])
      const first = await belfry.schedules.put('good', { every: '1h', job: 'chime' })
      // The reply was lost, so the client repeats the call.
      await bed.elapse(50)
      const again = await belfry.schedules.put('good', { every: '1h', job: 'chime' })
      expect(again).toEqual({ ...first, outcome: 'unchanged' })
      await bed.store.schedules.advance({ limit: 10, lookaheadMs: 1.5 * HOUR_MS, plan })
      expect(await recordedTicks(bed, 'good')).toEqual([first.createdAt + HOUR_MS])
    },
  )

  behaviour(
    'D8',
    'Any worker can die at any instant; workers are added and removed freely; there is no single point of failure.',
    async (bed) => {
      const fired: number[] = []
      const options = { fired, takesMs: 300 }
      const { belfry: first } = await startChimer(bed, options)
      const { belfry: second } = await startChimer(bed, options)
      const { anchor } = await first.schedules.put('bell', { every: '1s', job: 'chime' })
      await bed.until(() => fired.length >= 1, 'the first tick')
      await bed.until(async () => (await running(bed)).length > 0, 'somebody at work')
      const [atWork] = await running(bed)
      const [victim, survivor] = atWork?.instance === first.instance ? [first, second] : [second, first]
      bed.crash(victim)
      const { belfry: third } = await startChimer(bed, options)
      await bed.until(async () => (await bed.now()) > anchor + 3_000, 'life to go on')
      await bed.settled(survivor.stop())
      await bed.until(async () => (await bed.now()) > anchor + 4_000, 'life to go on')
      bed.crash(third)
      await startChimer(bed, options)
      const now = await bed.now()
      const due = async () => (await bed.runs({ schedule: 'bell' })).filter(({ tick = now }) => tick < now)
      await bed.until(async () => (await due()).every(isFinished), 'all that was due')
      expect(sorted((await due()).map(({ tick = 0 }) => tick))).toEqual(
        ticksAfter(anchor, Math.ceil((now - anchor) / SECOND_MS) - 1),
      )
      expect(new Set((await due()).map(({ state }) => state))).toEqual(new Set(['succeeded']))
    },
  )

  behaviour(
    'D9',
    'CRUD API for schedules, with versions: an update based on a stale version is refused.',
    async (bed) => {
      const { belfry } = await startChimer(bed, { roles: [] })
      const input = { every: '1h', job: 'chime', payload: { to: 'a' } }
      const created = await belfry.schedules.put('bell', input, { ifVersion: 0 })
      expect(created).toEqual({ ...(await belfry.schedules.get('bell')), outcome: 'created' })
      await expect(belfry.schedules.put('bell', input, { ifVersion: 0 })).rejects.toThrow(
        expect.objectContaining({ code: 'VERSION_CONFLICT' }),
      )
      const changed = { ...input, payload: { to: 'b' } }
      const updated = await belfry.schedules.put('bell', changed, { ifVersion: created.version })
      expect(updated.version).toBeGreaterThan(created.version)
      expect(updated.next).toEqual(created.next)
      await expect(belfry.schedules.put('bell', input, { ifVersion: created.version })).rejects.toThrow(
        expect.objectContaining({ code: 'VERSION_CONFLICT' }),
      )
      expect((await belfry.schedules.get('bell'))?.definition.payload).toEqual({ to: 'b' })
      await expect(belfry.schedules.remove('bell', { ifVersion: created.version })).rejects.toThrow(
        expect.objectContaining({ code: 'VERSION_CONFLICT' }),
      )
      await belfry.schedules.put('other', input)
      expect((await belfry.schedules.list()).items.map(({ id }) => id)).toEqual(['bell', 'other'])
      const listed = (await belfry.schedules.list({ prefix: 'be' })).items
      expect(listed.map((each) => ({ ...each, outcome: 'updated' }))).toEqual([updated])
      expect(await belfry.schedules.remove('bell', { ifVersion: updated.version })).toBe(true)
      expect(await belfry.schedules.get('bell')).toBeUndefined()
      await expect(belfry.schedules.put('bell', input, { ifVersion: updated.version })).rejects.toThrow(
        expect.objectContaining({ code: 'VERSION_CONFLICT' }),
      )
      const recreated = await belfry.schedules.put('bell', input)
      expect(recreated.version).toBeGreaterThan(updated.version)
    },
  )

  behaviour(
    'D9',
    'CRUD API for schedules, with versions: an update based on a stale version is refused. (pausing and resuming are updates)',
    async (bed) => {
      const { belfry } = await startChimer(bed, { roles: [] })
      const input = { every: '1h', job: 'chime' }
      const { version, next } = await belfry.schedules.put('bell', input)
      const paused = await belfry.schedules.pause('bell', 'holiday')
      expect(paused).toMatchObject({ state: 'paused', pauseNote: 'holiday' })
      await expect(belfry.schedules.put('bell', { ...input, priority: 1 }, { ifVersion: version })).rejects.toThrow(
        expect.objectContaining({ code: 'VERSION_CONFLICT' }),
      )
      const resumed = await belfry.schedules.resume('bell')
      expect(resumed.version).toBeGreaterThan(paused.version)
      expect(resumed).toMatchObject({ state: 'active', next })
    },
  )

  behaviour(
    'D11',
    'High-resolution schedules (`@every 1s`) never lag for good: after a stall the timeline is back on time at once, and what was missed is accounted for.',
    async (bed) => {
      const { belfry, fired } = await startChimer(bed, { grace: '1s', lookahead: 0 })
      const { anchor } = await belfry.schedules.put('bell', { cron: '@every 1s', job: 'chime' })
      await bed.until(() => fired.length >= 1, 'the first tick')
      bed.hold(belfry)
      await bed.elapse(3_200)
      bed.resume(belfry)
      const resumedAt = await bed.now()
      await bed.until(() => fired.some((tick) => tick > resumedAt), 'a tick after the stall')
      const [back] = (await bed.runs({ schedule: 'bell' })).filter(({ tick = 0 }) => tick > resumedAt)
      expect((back?.startedAt ?? Number.POSITIVE_INFINITY) - (back?.tick ?? 0)).toBeLessThan(SECOND_MS)
      expect(back?.tick).toBeLessThanOrEqual(resumedAt + SECOND_MS)
      const ranges = await skips(bed, 'bell')
      expect(ranges.map(({ reason }) => reason)).toEqual(['missed'])
      const accounted = sorted([...(await recordedTicks(bed, 'bell')), ...ranges.flatMap(ticksOf)])
      expect(accounted).toEqual(ticksAfter(anchor, accounted.length))
    },
  )

  behaviour(
    'D11',
    'High-resolution schedules (`@every 1s`) never lag for good. (a handler slower than the interval)',
    async (bed) => {
      const { belfry, fired } = await startChimer(bed, { takesMs: 1_500, lookahead: 0 })
      const { anchor } = await belfry.schedules.put('bell', { cron: '@every 1s', job: 'chime', overlap: 'skip' })
      await bed.until(() => fired.length >= 2, 'two runs')
      const ranges = await skips(bed, 'bell')
      expect(new Set(ranges.map(({ reason }) => reason))).toEqual(new Set(['overlap']))
      const accounted = sorted([...(await recordedTicks(bed, 'bell')), ...ranges.flatMap(ticksOf)])
      expect(accounted).toEqual(ticksAfter(anchor, accounted.length))
      for (const run of await bed.runs({ schedule: 'bell' })) {
        expect((run.startedAt ?? Number.POSITIVE_INFINITY) - (run.tick ?? 0)).toBeLessThan(SECOND_MS)
      }
    },
  )

  behaviour('D12', 'Deadlines: a tick later than its deadline is skipped, and recorded as such.', async (bed) => {
    const { belfry: recorder } = await startChimer(bed, { roles: ['tick'] })
    const at = new Date((await bed.now()) + 300)
    await recorder.schedules.put('strict', { at, job: 'chime', deadline: '500ms' })
    await recorder.schedules.put('patient', { at, job: 'chime', deadline: '1h' })
    await bed.until(async () => (await bed.now()) > at.getTime() + 600, 'the deadline to pass')
    const { fired } = await startChimer(bed, { roles: ['run'] })
    await bed.until(() => fired.length >= 1, 'the patient one')
    await bed.elapse(200)
    expect(fired).toHaveLength(1)
    expect(await stateOf(bed, 'patient')).toBe('succeeded')
    expect(await bed.runs({ schedule: 'strict' })).toMatchObject([{ state: 'skipped', reason: 'deadline' }])
    expect(await recorder.schedules.explain('strict', at)).toMatchObject({ status: 'skipped', reason: 'deadline' })
  })

  behaviour(
    'D12',
    'Deadlines: a tick later than its deadline is skipped, and recorded as such. (no instance was up to record it)',
    async (bed) => {
      const { belfry: client } = await startChimer(bed, { roles: [] })
      const at = new Date((await bed.now()) + 300)
      await client.schedules.put('bell', { at, job: 'chime', deadline: '500ms' })
      await bed.until(async () => (await bed.now()) > at.getTime() + 600, 'the deadline to pass')
      const { fired } = await startChimer(bed)
      await bed.until(async () => (await skips(bed, 'bell')).length > 0, 'the skip')
      expect(await skips(bed, 'bell')).toEqual([{ from: at.getTime(), to: at.getTime(), count: 1, reason: 'deadline' }])
      expect(await client.schedules.explain('bell', at)).toMatchObject({ status: 'skipped', reason: 'deadline' })
      expect(fired).toEqual([])
    },
  )

  behaviour('D12', 'Deadlines: a tick later than its deadline is skipped. (a retry is exempt)', async (bed) => {
    const belfry = await bed.instance()
    const attempts: number[] = []
    belfry.job('shaky', {
      retry: { backoff: 'fixed', delay: '700ms' },
      run: ({ run }) => {
        attempts.push(run.attempt)
        if (run.attempt === 1) throw new Error('not yet')
      },
    })
    await belfry.start()
    const at = new Date((await bed.now()) + 300)
    await belfry.schedules.put('bell', { at, job: 'shaky', deadline: '500ms' })
    await bed.until(async () => (await stateOf(bed, 'bell')) === 'succeeded', 'the second attempt')
    expect(attempts).toEqual([1, 2])
  })

  behaviour('D13', 'A retry after "next tick enqueued, publish failed" must not fork the timeline.', async (bed) => {
    const orders = brokenAtFirst(1)
    const belfry = await startWith(bed, { sinks: { orders } })
    const { anchor } = await belfry.schedules.put('bell', { every: '1s', to: 'orders' })
    await bed.until(() => orders.delivered.length >= 3, 'three deliveries')
    const ticks = await recordedTicks(bed, 'bell')
    expect(ticks).toEqual(ticksAfter(anchor, ticks.length))
    const ids = orders.delivered.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  behaviour(
    'D13',
    'A retry after "next tick enqueued, publish failed" must not fork the timeline. (recorded, and the reply was lost)',
    async (bed) => {
      let lost = 0
      const wrap = losingReplies(() => {
        lost += 1
        return lost % 2 === 1
      })
      const fired: number[] = []
      const { belfry } = await startChimer(bed, { wrap, fired })
      await startChimer(bed, { wrap, fired })
      const { anchor } = await belfry.schedules.put('bell', { every: '1s', job: 'chime', payload: 'ding' })
      await bed.until(() => fired.length >= 4, 'four ticks')
      const ticks = await recordedTicks(bed, 'bell')
      expect(lost).toBeGreaterThan(2)
      expect(ticks).toEqual(ticksAfter(anchor, ticks.length))
      expect(sorted(fired)).toEqual(ticksAfter(anchor, fired.length))
    },
  )

  behaviour('D14', 'A schedule whose first tick is due at once must not lose it.', async (bed) => {
    const { belfry, fired } = await startChimer(bed)
    const now = await bed.now()
    const dues = { now, 'just past': now - 50, 'seconds past': now - 5_000, 'about to come': now + 1 }
    for (const [id, at] of Object.entries(dues)) await belfry.schedules.put(id, { at: new Date(at), job: 'chime' })
    await bed.until(() => fired.length >= 4, 'all of them')
    await bed.elapse(300)
    expect(sorted(fired)).toEqual(sorted(Object.values(dues)))
  })

  behaviour(
    'D14',
    'A schedule whose first tick is due at once must not lose it. (an interval that starts now)',
    async (bed) => {
      const { belfry, fired } = await startChimer(bed)
      const now = await bed.now()
      const startsAt = new Date(now)
      await bed.elapse(20)
      const put = await belfry.schedules.put('bell', { every: '1h', startsAt, job: 'chime' })
      expect(put.next).toEqual(startsAt)
      await bed.until(() => fired.length >= 1, 'the first tick')
      // Put again with another interval, the schedule must not fire that tick again.
      await belfry.schedules.put('bell', { every: '2h', startsAt, job: 'chime' })
      await bed.elapse(500)
      expect(fired).toEqual([now])
      expect((await belfry.schedules.get('bell'))?.next).toEqual(new Date(now + 2 * HOUR_MS))
    },
  )

  behaviour(
    'D14',
    'A schedule whose first tick is due at once must not lose it. (replacing one with ticks recorded ahead)',
    async (bed) => {
      const { belfry, fired } = await startChimer(bed, { lookahead: '5s' })
      const { anchor } = await belfry.schedules.put('bell', { every: '2s', job: 'chime' })
      await bed.until(async () => (await recordedTicks(bed, 'bell')).length >= 2, 'ticks ahead')
      const at = new Date((await bed.now()) + 100)
      await belfry.schedules.put('bell', { at, job: 'chime' })
      await bed.until(() => fired.length >= 1, 'the tick')
      await bed.until(async () => (await bed.now()) > anchor + 2_200, 'the old ticks not to come')
      expect(fired).toEqual([at.getTime()])
    },
  )

  behaviour(
    'D14',
    'A schedule whose first tick is due at once must not lose it. (declared in code, and by many at once)',
    async (bed) => {
      const fired: number[] = []
      const at = new Date(await bed.now())
      const instances = await Promise.all(
        [1, 2, 3].map(async () => {
          const belfry = await bed.instance({ app: 'tower' })
          belfry.job('chime', { run: ({ tick }) => void fired.push(tick.getTime()) })
          belfry.schedule('bell', { at, job: 'chime' })
          return belfry
        }),
      )
      await Promise.all(instances.map((belfry) => belfry.start()))
      await bed.until(() => fired.length >= 1, 'the tick')
      await bed.elapse(500)
      expect(fired).toEqual([at.getTime()])
    },
  )

  behaviour(
    'D15',
    'Compare-and-set checks how many rows it changed: two workers never both proceed. (claims)',
    async (bed) => {
      const { belfry } = await startChimer(bed, { roles: [] })
      const workers = await joinByHand(bed, 6)
      const at = new Date(await bed.now())
      for (let number = 0; number < 20; number += 1) {
        await belfry.schedules.put(`bell/${number}`, { at, job: 'chime' })
      }
      await bed.store.schedules.advance({ limit: 100, lookaheadMs: 0, plan })
      const claims = await Promise.all(workers.map((worker) => worker.claim(10)))
      const claimed = claims.flat().map(({ id }) => id)
      while (claimed.length < 20) {
        const more = await Promise.all(workers.map((worker) => worker.claim(10)))
        expect(more.flat().length).toBeGreaterThan(0)
        claimed.push(...more.flat().map(({ id }) => id))
      }
      expect(new Set(claimed).size).toBe(20)
      expect(claimed).toHaveLength(20)
    },
  )

  behaviour(
    'D15',
    'Compare-and-set checks how many rows it changed: two workers never both proceed. (updates)',
    async (bed) => {
      const { belfry: one } = await startChimer(bed, { roles: [] })
      const { belfry: other } = await startChimer(bed, { roles: [] })
      let { version } = await one.schedules.put('bell', { every: '1h', job: 'chime' })
      for (let round = 1; round <= 5; round += 1) {
        const writes = Array.from({ length: 6 }, (_, number) => {
          const input = { every: '1h', job: 'chime', payload: { round, number } }
          return (number % 2 === 0 ? one : other).schedules.put('bell', input, { ifVersion: version })
        })
        const results = await Promise.allSettled(writes)
        const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
        const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
        expect(won).toHaveLength(1)
        expect(lost).toEqual(Array(5).fill(expect.objectContaining({ code: 'VERSION_CONFLICT' })))
        expect((await one.schedules.get('bell'))?.definition.payload).toEqual(won[0]?.definition.payload)
        version = won[0]?.version ?? 0
      }
    },
  )

  behaviour(
    'D15',
    'Compare-and-set checks how many rows it changed: two workers never both proceed. (settlements)',
    async (bed) => {
      const { belfry } = await startChimer(bed, { roles: [] })
      const [slow, quick] = (await joinByHand(bed, 2, 300)) as [HandWorker, HandWorker]
      await belfry.schedules.put('bell', { at: new Date(await bed.now()), job: 'chime' })
      await bed.store.schedules.advance({ limit: 10, lookaheadMs: 0, plan })
      const [first] = await slow.claim(1)
      await bed.elapse(200)
      await quick.beat()
      await bed.elapse(200)
      await bed.store.runs.rescue(10)
      const [second] = await quick.claim(1)
      expect(second?.id).toBe(first?.id)
      expect(second?.token).toBeGreaterThan(first?.token ?? Number.POSITIVE_INFINITY)
      const settle = (run: Run | undefined, result: string) =>
        bed.store.runs.settle([{ run: run?.id ?? '', token: run?.token ?? 0, outcome: { kind: 'succeeded', result } }])
      const outcomes = await Promise.all([settle(first, 'slow'), settle(second, 'quick'), settle(first, 'slow again')])
      expect(outcomes).toEqual([['stale'], ['settled'], ['stale']])
      expect(await bed.runs({ schedule: 'bell' })).toMatchObject([{ state: 'succeeded', result: 'quick' }])
    },
  )

  behaviour('D16', 'A manual trigger neither ends a schedule, nor forks it, nor moves its next tick.', async (bed) => {
    const { belfry, fired } = await startChimer(bed, { lookahead: 0 })
    const before = await belfry.schedules.put('bell', { every: '1s', job: 'chime', times: 3 })
    for (let pull = 0; pull < 5; pull += 1) await belfry.schedules.trigger('bell')
    const after = await belfry.schedules.get('bell')
    expect({ ...after, outcome: 'created' }).toEqual(before)
    expect(after?.remaining).toBe(3)
    await bed.until(() => fired.length >= 8, 'five triggers and three ticks')
    await bed.elapse(1_200)
    expect(fired).toHaveLength(8)
    const ticks = (await bed.runs({ schedule: 'bell' })).filter(({ origin }) => origin === 'tick')
    expect(sorted(ticks.map(({ tick = 0 }) => tick))).toEqual(ticksAfter(before.anchor, 3))
  })

  behaviour(
    'D16',
    'A manual trigger neither ends a schedule, nor forks it, nor moves its next tick. (the only tick, a paused one, and one at the same instant)',
    async (bed) => {
      const { belfry, fired } = await startChimer(bed, { lookahead: 0 })
      const at = new Date((await bed.now()) + 700)
      await belfry.schedules.put('once', { at, job: 'chime' })
      await belfry.schedules.trigger('once')
      // Simulates a trigger at the exact instant of the tick.
      await bed.store.runs.enqueue([
        {
          ...{ target: { job: 'chime' }, origin: 'trigger', schedule: 'once', tick: at.getTime() },
          ...{ payload: null, priority: 0, keep: 'all' },
        },
      ])
      await bed.until(() => fired.length >= 2, 'both triggers')
      expect(await belfry.schedules.get('once')).toMatchObject({ state: 'active', next: at })
      await bed.until(() => fired.length >= 3, 'the tick')
      const origins = (await bed.runs({ schedule: 'once' })).map(({ origin }) => origin)
      expect(origins).toEqual(['trigger', 'trigger', 'tick'])
      await belfry.schedules.put('paused', { every: '1h', job: 'chime' })
      const paused = await belfry.schedules.pause('paused')
      await belfry.schedules.trigger('paused')
      await bed.until(() => fired.length >= 4, 'the trigger of a paused schedule')
      expect(await belfry.schedules.get('paused')).toEqual(paused)
    },
  )

  for (const keep of ['all', 'failures', 'none'] as const) {
    behaviour('D17', `A monthly schedule survives every retention setting. (keep: ${keep})`, async (bed) => {
      const retention = { history: { maxAge: 0, maxRuns: 0 } }
      const { belfry, fired } = await startChimer(bed, retention)
      const at = (Math.floor((await bed.now()) / SECOND_MS) + 2) * SECOND_MS
      const cron = monthlyAt(new Date(at))
      const created = await belfry.schedules.put('rent', { cron, job: 'chime', keep })
      expect(created.next?.getTime()).toBe(at)
      await pruneAll(bed)
      await bed.until(() => fired.length >= 1, 'the first of the month')
      await bed.until(async () => (await bed.runs({ schedule: 'rent' })).length === 0, 'its history to be gone')
      await pruneAll(bed)
      const kept = await belfry.schedules.get('rent')
      expect(kept).toMatchObject({ state: 'active', version: created.version })
      expect(kept?.next?.getTime()).toBeGreaterThan(at + 27 * 24 * HOUR_MS)
      // The month's tick does not run again: neither on an instance with clock skew, nor after a put, a pause and a
      // resume.
      await startChimer(bed, { ...retention, skewMs: -600_000, fired })
      await belfry.schedules.put('rent', { cron, job: 'chime', keep, payload: 'dearer' })
      await belfry.schedules.pause('rent')
      await belfry.schedules.resume('rent')
      await bed.elapse(1_500)
      expect(fired).toEqual([at])
      expect((await belfry.schedules.get('rent'))?.next).toEqual(kept?.next)
    })
  }
})

// ── Instances ───────────────────────────────────────────────────────────────────────────────────────────────────────

async function startWith(bed: TestBed, options: InstanceOptions): Promise<Belfry> {
  const belfry = await bed.instance(options)
  await belfry.start()
  return belfry
}

interface ChimerOptions extends InstanceOptions {
  readonly fired?: number[]
  readonly takesMs?: number
}

/** An instance with the job `chime`, and the nominal instants that it completed. */
async function startChimer(bed: TestBed, { fired = [], takesMs, ...options }: ChimerOptions = {}) {
  const belfry = await bed.instance(options)
  belfry.job('chime', {
    run: async ({ tick }) => {
      if (takesMs !== undefined) await bed.sleep(takesMs)
      fired.push(tick.getTime())
    },
  })
  await belfry.start()
  return { belfry, fired }
}

interface HandWorker {
  claim(limit: number): Promise<readonly Run[]>
  beat(): Promise<unknown>
}

/** Registers instances whose claims the test makes itself. */
async function joinByHand(bed: TestBed, count: number, leaseMs = 30_000): Promise<HandWorker[]> {
  const ids = Array.from({ length: count }, (_, number) => `worker-${number}`)
  for (const id of ids) {
    const jobs = [{ name: 'chime' }]
    await bed.store.instances.join({ id, host: 'test', pid: 1, zoneData: 'test', jobs }, leaseMs)
  }
  return ids.map((instance) => {
    let claim = 0
    return {
      async claim(limit) {
        claim += 1
        const jobs = [{ name: 'chime', limit }]
        return (await bed.store.runs.claim({ instance, claim, limit, jobs, sinks: [], floor: 0 })).runs
      },
      beat: () => bed.store.instances.beat({ instance, leaseMs, attempts: [], claimsSettled: 0 }),
    }
  })
}

/** Executes each call, and then breaks the connection before the reply. */
function losingReplies(isLost: () => boolean): (store: Store) => Store {
  return (store) => ({
    ...store,
    schedules: {
      ...store.schedules,
      async advance(request) {
        const result = await store.schedules.advance(request)
        if (result.recorded > 0 && isLost()) throw new Error('connection reset')
        return result
      },
    },
  })
}

// ── Sinks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A broker that refuses every event a number of times, alternately by an exception and by an answer. */
function brokenAtFirst(times: number) {
  const refused: SinkMessage[] = []
  const delivered: SinkMessage[] = []
  return {
    refused,
    delivered,
    async deliver(messages: readonly SinkMessage[]): Promise<readonly Delivery[]> {
      const isNew = ({ id }: SinkMessage) => refused.filter((message) => message.id === id).length < times
      if (messages.every(isNew) && refused.length % 2 === 0) {
        refused.push(...messages)
        throw new Error('broker unreachable')
      }
      return messages.map((message): Delivery => {
        const bad = isNew(message)
        ;(bad ? refused : delivered).push(message)
        return bad ? { delivered: false, error: new Error('not acknowledged') } : { delivered: true }
      })
    },
  }
}

function event({ id, generated_at, schedule_id, payload }: SinkMessage) {
  return { id, generated_at, schedule_id, payload }
}

function byId<Event extends { readonly id: string }>(events: readonly Event[]): Event[] {
  return [...events].sort((one, other) => one.id.localeCompare(other.id))
}

// ── Looking into the store ──────────────────────────────────────────────────────────────────────────────────────────

async function recordedTicks(bed: TestBed, schedule: string): Promise<number[]> {
  return sorted((await bed.runs({ schedule })).map(({ tick = 0 }) => tick))
}

async function ended(bed: TestBed, schedule: string): Promise<number> {
  return (await bed.runs({ schedule })).filter(isFinished).length
}

async function running(bed: TestBed): Promise<readonly Run[]> {
  return (await bed.runs({ job: 'chime' })).filter(({ state }) => state === 'running')
}

async function stateOf(bed: TestBed, schedule: string): Promise<string | undefined> {
  return (await bed.runs({ schedule })).at(-1)?.state
}

async function skips(bed: TestBed, schedule: string): Promise<readonly SkipRange[]> {
  return bed.store.schedules.skips(schedule, 0, (await bed.now()) + HOUR_MS, 100)
}

async function pruneAll(bed: TestBed): Promise<void> {
  await bed.store.runs.prune({ maxAgeMs: 0, maxRuns: 0, leaseAgeMs: 0, limit: 1_000 })
}

// ── Time ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The ticks of a one-second interval. */
function ticksAfter(anchor: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => anchor + (index + 1) * SECOND_MS)
}

function ticksOf({ from, count }: SkipRange): number[] {
  return Array.from({ length: count }, (_, index) => from + index * SECOND_MS)
}

function monthlyAt(at: Date): string {
  return `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} ${at.getUTCDate()} * *`
}

function sorted(numbers: readonly number[]): number[] {
  return [...numbers].sort((one, other) => one - other)
}
