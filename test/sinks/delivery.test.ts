import { describe, expect, it } from 'vitest'
import type { BelfryOptions } from '../../src/api/belfry-options.js'
import { createTestBelfry } from '../../src/testing/test-belfry.js'
import { accept, away, each, memoryLog, no, ScriptedSink } from './scripted-sink.js'

const FIRST = '2026-01-01T00:00:01Z'
const UNIX = Date.parse(FIRST) / 1_000

/** Schedules with one tick each, all at the same instant. */
function burst(count: number) {
  return Array.from(
    { length: count },
    (_, at) => [`s/${String(at).padStart(4, '0')}`, { at: FIRST, to: 'orders' }] as const,
  )
}

async function started(options: Partial<BelfryOptions>) {
  const test = createTestBelfry(options as never)
  await test.belfry.start()
  return test
}

describe('an enqueue to a sink', () => {
  it('delivers one event without a schedule, with options, a delay and a dedupe key', async () => {
    const orders = new ScriptedSink()
    const { belfry, advance } = await started({ sinks: { orders } })
    const once = await belfry.enqueue({ to: 'orders', toOptions: { key: 'k' } }, { id: 7 }, { in: '1m', key: 'once' })
    const again = await belfry.enqueue({ to: 'orders' }, null, { key: 'once' })
    expect([once.outcome, again]).toEqual(['enqueued', { outcome: 'duplicate', run: once.run }])
    await advance('59s')
    expect(orders.delivered).toEqual([])
    await advance('2s')
    expect(orders.delivered).toMatchObject([{ id: once.run, key: 'k', payload: { id: 7 } }])
    expect(orders.delivered[0]).not.toHaveProperty('schedule_id')
  })

  it('is refused when there is no such sink, or when the sink refuses its options', async () => {
    const { belfry } = await started({ sinks: { orders: new ScriptedSink() } })
    await expect(belfry.enqueue({ to: 'order' })).rejects.toThrow(
      'enqueue to sink "order": there is no sink "order"; there are orders',
    )
    await expect(belfry.enqueue({ to: 'orders', toOptions: 3 })).rejects.toThrow(
      'enqueue to sink "orders": toOptions is "3"; it must be an object',
    )
    await expect(belfry.enqueue({ to: 'orders', options: {} } as never)).rejects.toThrow(
      /unknown option "options"|toOptions/,
    )
    await expect(belfry.enqueue({ to: 'orders' }, null, { delay: 1 } as never)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  it('keeps the order of its key in an ordered sink', async () => {
    const orders = new ScriptedSink({ ordered: true })
    orders.script = each(({ payload, attempt }) => (payload === 1 && attempt === 1 ? no : { delivered: true }))
    const { belfry, advance } = await started({ sinks: { orders } })
    for (const payload of [1, 2]) await belfry.enqueue({ to: 'orders', toOptions: { key: 'k' } }, payload)
    await advance('1m')
    expect(orders.delivered.map(({ payload }) => payload)).toEqual([1, 2])
  })
})

describe('a sink', () => {
  it('gets messages in batches, with a limited number of calls, and claims no more than it can send', async () => {
    const orders = new ScriptedSink({ batch: 10, concurrency: 3 })
    const hold = orders.hold()
    const { belfry, advance, store } = await started({ sinks: { orders } })
    await belfry.schedules.putMany(burst(100))
    await advance('2s')
    expect(orders.calls.map((messages) => messages.length)).toEqual([10, 10, 10])
    expect((await store.runs.list({ limit: 200, states: ['running'] })).items).toHaveLength(30)
    expect((await store.runs.list({ limit: 200, states: ['ready'] })).items).toHaveLength(70)
    hold.release()
    await advance('1s')
    expect(orders.delivered).toHaveLength(100)
    expect(orders.most).toBeLessThanOrEqual(30)
    expect(orders.ids).toEqual([...orders.ids].sort())
    expect(orders.calls.every((messages) => messages.length <= 10)).toBe(true)
  })

  it('counts a message as in flight until its outcome is written', async () => {
    const orders = new ScriptedSink({ batch: 10, concurrency: 10, inFlight: 15 })
    const hold = orders.hold()
    const { belfry, advance } = await started({ sinks: { orders } })
    await belfry.schedules.putMany(burst(50))
    await advance('2s')
    expect(orders.inFlight).toBe(15)
    hold.release()
    await advance('1s')
    expect(orders.delivered).toHaveLength(50)
    expect(orders.most).toBe(15)
  })

  it('with linger collects messages until the batch is full or the first has waited long enough', async () => {
    const orders = new ScriptedSink({ batch: 5, linger: '200ms' })
    const { belfry, advance } = await started({ sinks: { orders } })
    const put = (id: string) =>
      belfry.schedules.put(id, { every: '1h', to: 'orders' }).then(() => belfry.schedules.trigger(id))
    await put('a')
    await advance('150ms')
    await put('b')
    expect(orders.calls).toHaveLength(0)
    await advance('60ms')
    expect(orders.calls.map((messages) => messages.map(({ schedule_id }) => schedule_id))).toEqual([['a', 'b']])
    for (const id of ['c', 'd', 'e', 'f', 'g']) await put(id)
    await advance('1ms')
    expect(orders.calls.map((messages) => messages.length)).toEqual([2, 5])
  })

  it('uses no slot of a handler, and handlers use none of its slots', async () => {
    const orders = new ScriptedSink()
    orders.hold()
    const { belfry, advance } = createTestBelfry({ sinks: { orders }, concurrency: 1 })
    const ran: string[] = []
    const job = belfry.job('mail', { run: ({ run }) => void ran.push(run.id) })
    await belfry.start()
    await belfry.schedules.putMany(burst(20))
    await advance('2s')
    expect(orders.inFlight).toBe(20)
    await job.enqueue()
    await advance('1s')
    expect(ran).toHaveLength(1)
  })

  it('that fails one message of a batch gets that one again, with the same id, and the others once', async () => {
    const orders = new ScriptedSink()
    orders.script = each(({ schedule_id, attempt }) =>
      schedule_id === 's/0001' && attempt < 3 ? no : { delivered: true },
    )
    const { belfry, advance, runs } = await started({ sinks: { orders } })
    await belfry.schedules.putMany(burst(3))
    await advance('1m')
    expect(orders.calls.flat().map(({ id, attempt }) => [id, attempt])).toEqual([
      [`s/0000-${UNIX}`, 1],
      [`s/0001-${UNIX}`, 1],
      [`s/0002-${UNIX}`, 1],
      [`s/0001-${UNIX}`, 2],
      [`s/0001-${UNIX}`, 3],
    ])
    const tokens = orders.calls
      .flat()
      .filter(({ schedule_id }) => schedule_id === 's/0001')
      .map(({ token }) => token)
    expect(new Set(tokens).size).toBe(3)
    expect(await runs('s/0001')).toMatchObject([{ state: 'succeeded', attempt: 3, failures: 2 }])
  })

  it('is retried for hours; then the run fails with the last error, and is a dead letter that can be retried', async () => {
    const orders = new ScriptedSink()
    orders.script = each(({ attempt }) => ({ delivered: false, error: new Error(`refused ${attempt}`) }))
    const { belfry, advance } = await started({ sinks: { orders, other: new ScriptedSink() } })
    await belfry.schedules.putMany(burst(3))
    await advance('11h')
    expect((await belfry.runs.list({ to: 'orders', state: 'failed' })).items).toEqual([])
    await advance('5h')
    const dead = (await belfry.runs.list({ to: 'orders', state: 'failed' })).items
    expect(dead).toMatchObject(Array(3).fill({ state: 'failed', failures: 25, error: { message: 'refused 25' } }))
    expect((await belfry.runs.list({ to: 'other', state: 'failed' })).items).toEqual([])
    orders.script = accept
    expect((await belfry.runs.retryMany({ to: 'orders', state: 'failed' })).changed).toHaveLength(3)
    await advance('1s')
    expect(orders.ids).toEqual([0, 1, 2].map((at) => `s/000${at}-${UNIX}`))
    expect((await belfry.runs.list({ to: 'orders', state: 'failed' })).items).toEqual([])
  })

  it('that reports a permanent failure is not called again, and a given retry time is respected', async () => {
    const orders = new ScriptedSink()
    orders.script = each(({ schedule_id, attempt }) => {
      if (schedule_id === 's/0000') return { delivered: false, error: new Error('too large'), retryable: false }
      return attempt === 1 ? { ...no, retryAfterMs: 600_000 } : { delivered: true }
    })
    const { belfry, advance, runs } = await started({ sinks: { orders } })
    await belfry.schedules.putMany(burst(2))
    await advance('9m')
    expect(orders.calls).toHaveLength(1)
    expect(await runs('s/0000')).toMatchObject([{ state: 'failed', attempt: 1, error: { message: 'too large' } }])
    await advance('3m')
    expect(orders.ids).toEqual([`s/0001-${UNIX}`])
  })

  it('does not use up the last attempt for a message that was not sent, unless that continues for long', async () => {
    const orders = new ScriptedSink({ retry: { attempts: 3 } })
    orders.script = each(({ schedule_id, attempt }) =>
      schedule_id === 's/0000' && attempt > 4 ? { delivered: true } : { ...no, untried: true },
    )
    const { belfry, advance, runs } = await started({ sinks: { orders } })
    await belfry.schedules.putMany(burst(2))
    await advance('1h')
    expect(await runs('s/0000')).toMatchObject([{ state: 'succeeded', attempt: 5 }])
    expect(await runs('s/0001')).toMatchObject([{ state: 'failed', attempt: 6 }])
  })

  it('that never answers is abandoned after its timeout, and its messages are retried', async () => {
    const orders = new ScriptedSink({ timeout: '10s', concurrency: 1 })
    let isAborted = false
    orders.script = (_, signal) => {
      signal.addEventListener('abort', () => {
        isAborted = true
      })
      return new Promise(() => {})
    }
    const { belfry, advance, runs } = await started({ sinks: { orders } })
    await belfry.schedules.putMany(burst(2))
    await advance('12s')
    expect(isAborted).toBe(true)
    orders.script = accept
    await advance('1m')
    expect(orders.ids.sort()).toEqual([`s/0000-${UNIX}`, `s/0001-${UNIX}`])
    expect(await runs('s/0000')).toMatchObject([{ state: 'succeeded', failures: 1 }])
  })

  it('that throws because of one message gets smaller batches, until that message fails alone', async () => {
    const orders = new ScriptedSink({ retry: { attempts: 12 } })
    orders.script = async (messages, signal) => {
      if (messages.some(({ schedule_id }) => schedule_id === 's/0007')) throw new Error('cannot be encoded')
      return accept(messages, signal)
    }
    const { belfry, advance, runs } = await started({ sinks: { orders } })
    await belfry.schedules.putMany(burst(50))
    await belfry.schedules.put('others', { every: '1m', to: 'orders' })
    await advance('3h')
    expect(orders.ids.filter((id) => id.startsWith('s/'))).toHaveLength(49)
    expect(await runs('s/0007')).toMatchObject([{ state: 'failed', error: { message: 'cannot be encoded' } }])
  })

  it('that fails one message as unreachable does not count as unreachable: the others are delivered meanwhile', async () => {
    const orders = new ScriptedSink({ batch: 1, retry: { attempts: 5 } })
    orders.script = each(({ schedule_id }) =>
      schedule_id === 's/0000' ? { ...no, unreachable: true } : { delivered: true },
    )
    const log = memoryLog()
    const { belfry, advance, runs } = await started({ sinks: { orders }, logger: log })
    await belfry.schedules.putMany(burst(1))
    await belfry.schedules.put('others', { every: '1s', to: 'orders' })
    await advance('30m')
    expect(await runs('s/0000')).toMatchObject([{ state: 'failed', failures: 5 }])
    expect(orders.delivered.length).toBeGreaterThan(1_795)
    const late = (await belfry.runs.list({ to: 'orders', state: 'succeeded', limit: 1_000 })).items
    expect(late.filter(({ tick, finishedAt }) => Number(finishedAt) - Number(tick) > 1_100)).toEqual([])
    expect(log.lines.filter((line) => !/attempt|has failed for good/.test(line))).toEqual([])
  })

  it('is opened before its first message, again if that failed, and closed at the end', async () => {
    const events: string[] = []
    let isBroken = true
    const log = memoryLog()
    const sink = {
      open: async () => {
        events.push('open')
        if (isBroken) throw new Error('no broker')
      },
      deliver: async (messages: readonly unknown[]) => {
        events.push('deliver')
        return messages.map(() => ({ delivered: true as const }))
      },
      close: async () => void events.push('close'),
    }
    const { belfry, advance } = await started({ sinks: { orders: sink }, logger: log })
    await belfry.schedules.putMany(burst(1))
    await advance('5s')
    expect(events.every((event) => event === 'open')).toBe(true)
    isBroken = false
    await advance('1m')
    await belfry.stop()
    expect(events.slice(-3)).toEqual(['open', 'deliver', 'close'])
    expect(log.lines).toEqual([
      'warn sink "orders" is unreachable: events for it wait in the store; one of them is tried again every few seconds',
      'info sink "orders" can be reached again: events that waited for it are delivered now',
    ])
  })
})

describe('two stores with a schedule of the same name', () => {
  it('send events with the same id, from different sources, and repeats that a broker can recognise', async () => {
    const sinks = [new ScriptedSink(), new ScriptedSink()]
    for (const orders of sinks) {
      orders.script = each(({ attempt }) => (attempt === 1 ? no : { delivered: true }))
      const { belfry, advance } = await started({ sinks: { orders } })
      await belfry.schedules.put('report', { at: FIRST, to: 'orders' })
      await advance('1m')
    }
    const [one, other] = sinks.map(({ calls }) => calls.flat())
    expect([...(one ?? []), ...(other ?? [])].map(({ id }) => id)).toEqual(Array(4).fill(`report-${UNIX}`))
    expect(one?.[0]?.dedupeId).toBe(one?.[1]?.dedupeId)
    expect(other?.[0]?.dedupeId).toBe(other?.[1]?.dedupeId)
    expect(one?.[0]?.dedupeId).not.toBe(other?.[0]?.dedupeId)
  })

  it('keep their source, whichever instance delivers', async () => {
    const orders = new ScriptedSink()
    orders.script = each(({ attempt }) => (attempt === 1 ? no : { delivered: true }))
    const { belfry, advance, instance } = await started({ sinks: { orders } })
    await belfry.schedules.put('report', { at: FIRST, to: 'orders' })
    await advance('1100ms')
    await belfry.stop()
    await instance({ sinks: { orders } }).start()
    await advance('1m')
    expect(orders.calls.flat().map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(new Set(orders.calls.flat().map(({ dedupeId }) => dedupeId)).size).toBe(1)
  })
})

describe('a broker that is down for hours', () => {
  it('is reported once and probed rarely; jobs and other sinks continue, and after the recovery every message arrives', async () => {
    const orders = new ScriptedSink({ batch: 50 })
    const audit = new ScriptedSink()
    orders.script = away
    const log = memoryLog()
    const beats: number[] = []
    const { belfry, advance, store } = createTestBelfry({ sinks: { orders, audit }, logger: log })
    belfry.job('beat', { run: () => void beats.push(1) })
    belfry.schedule('beat', { every: '1m', job: 'beat' })
    belfry.schedule('audit', { every: '1m', to: 'audit' })
    await belfry.start()
    const ids = Array.from({ length: 20 }, (_, at) => `s/${at}`)
    await belfry.schedules.putMany(ids.map((id) => [id, { every: '5m', to: 'orders' }]))
    let claimed = 0
    belfry.on('run:started', ({ run }) => {
      if ('sink' in run.target && run.target.sink === 'orders') claimed += 1
    })
    await advance('3h')
    expect(log.lines).toHaveLength(1)
    expect(log.lines[0]).toMatch(/^warn sink "orders" is unreachable/)
    expect(orders.most).toBeLessThanOrEqual(50)
    // The sink is probed with one message every 5 to 10 s, however many messages wait.
    expect(claimed).toBeLessThan((3 * 3_600) / 5 + 50)
    expect(orders.calls.slice(2).every((messages) => messages.length === 1)).toBe(true)
    expect([beats.length, audit.delivered.length]).toEqual([180, 180])
    orders.script = accept
    await advance('2h')
    expect(log.lines).toHaveLength(2)
    expect(log.lines[1]).toMatch(/^info sink "orders" can be reached again/)
    const recorded = ids.flatMap((id) => Array.from({ length: 36 }, (_, at) => `${id}-${UNIX - 1 + 300 * (at + 1)}`))
    expect(recorded.filter((id) => !orders.ids.includes(id))).toEqual([])
    expect(new Set(orders.ids).size).toBe(orders.ids.length)
    expect((await store.runs.list({ sink: 'orders', states: ['failed'], limit: 10 })).items).toEqual([])
  })

  it('uses up no attempts of waiting messages, and gets all of them within seconds after the recovery', async () => {
    const orders = new ScriptedSink({ batch: 50, retry: { attempts: 2 } })
    orders.script = each(() => ({ delivered: false, error: new Error('there is no quorum'), unreachable: true }))
    const log = memoryLog()
    const { belfry, advance } = await started({ sinks: { orders }, logger: log })
    const failed: string[] = []
    belfry.on('run:retrying', ({ run }) => void failed.push(run.id))
    await belfry.schedules.putMany(burst(500))
    await advance('1h')
    expect(log.lines).toHaveLength(1)
    orders.script = accept
    await advance('11s')
    expect(new Set(orders.ids).size).toBe(500)
    expect(failed).toEqual([])
    expect(log.lines).toHaveLength(2)
  })
})

describe('an instance that dies', () => {
  const INSTANT = { lease: '15s' }

  it('before its messages were acknowledged leaves them to another instance, with the same ids', async () => {
    const orders = new ScriptedSink()
    orders.hold()
    const { belfry, instance, advance, crash, expireLeases } = await started({ ...INSTANT, sinks: { orders } })
    await belfry.schedules.putMany(burst(5))
    await advance('2s')
    crash()
    const heir = new ScriptedSink()
    const other = instance({ sinks: { orders: heir } })
    await other.start()
    await expireLeases()
    expect(heir.ids.sort()).toEqual(
      orders.calls
        .flat()
        .map(({ id }) => id)
        .sort(),
    )
    expect(heir.delivered.map(({ attempt }) => attempt)).toEqual([2, 2, 2, 2, 2])
  })

  it('between acknowledgement and settlement causes repeats of just those messages, with the same ids', async () => {
    const orders = new ScriptedSink()
    const { belfry, instance, advance, crash, expireLeases } = await started({ ...INSTANT, sinks: { orders } })
    await belfry.schedules.putMany(burst(5))
    orders.script = async (messages, signal) => {
      crash()
      return accept(messages, signal)
    }
    await advance('2s')
    expect(orders.delivered).toHaveLength(5)
    const heir = new ScriptedSink()
    const other = instance({ sinks: { orders: heir } })
    await other.start()
    await expireLeases()
    expect(heir.ids.sort()).toEqual(orders.ids.sort())
    await advance('1h')
    expect(heir.delivered).toHaveLength(5)
  })
})
