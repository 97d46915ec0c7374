import { describe, expect, it } from 'vitest'
import type { ScheduleFields } from '../../src/api/schedules/schedule-input.js'
import type { Json } from '../../src/core/checks/json.js'
import { failure } from '../../src/core/errors.js'
import type { Delivery, DeliveryOptions } from '../../src/core/sink.js'
import { log } from '../../src/sinks/log.js'
import { createTestBelfry } from '../../src/testing/test-belfry.js'
import { accept, each, no, ScriptedSink } from './scripted-sink.js'

const AT = '2026-01-01T00:00:01Z'

function checking(): ScriptedSink & { check(options: Json): void } {
  return Object.assign(new ScriptedSink(), {
    check(options: Json) {
      const { topic } = options as { topic?: Json }
      if (topic === 'bad') throw failure('OPTION_INVALID', 'topic "bad" is not allowed')
    },
  })
}

describe('a schedule with a sink', () => {
  const inputs: readonly [what: string, input: ScheduleFields, code: string, reason: RegExp][] = [
    [
      'that does not exist',
      { to: 'order' },
      'SINK_UNKNOWN',
      /schedule "x": there is no sink "order"; there are orders, strict/,
    ],
    [
      'with options it refuses',
      { to: 'orders', toOptions: { topic: 'bad' } },
      'OPTION_INVALID',
      /toOptions: topic "bad"/,
    ],
    [
      'with options that are not an object',
      { to: 'orders', toOptions: 'topic' },
      'OPTION_INVALID',
      /must be an object/,
    ],
    ['with a key that is not text', { to: 'orders', toOptions: { key: 7 } }, 'NAME_INVALID', /toOptions.key/],
    ['in order, and all at once', { to: 'strict', overlap: 'allow' }, 'OPTION_INVALID', /is ordered/],
  ]

  it.each(inputs)('%s is refused when it is put', async (_, input, code, reason) => {
    const sinks = { orders: checking(), strict: new ScriptedSink({ ordered: true }) }
    const { belfry } = createTestBelfry({ sinks })
    await belfry.start()
    const put = belfry.schedules.put('x', { every: '1h', ...input })
    await expect(put).rejects.toMatchObject({ code, message: expect.stringMatching(reason) })
    await expect(belfry.schedules.apply({ x: { every: '1h', ...input } })).rejects.toMatchObject({ code })
    expect(await belfry.schedules.get('x')).toBeUndefined()
    await belfry.stop()
  })

  it('declared in code for an unknown sink stops start()', async () => {
    const { belfry } = createTestBelfry({ sinks: {} })
    belfry.schedule('x', { every: '1h', to: 'orders' })
    await expect(belfry.start()).rejects.toMatchObject({ code: 'SINK_UNKNOWN', message: /no sinks are configured/ })
  })

  it('for a sink of another live instance is accepted; an instance without sinks accepts any', async () => {
    const { belfry, instance, crash, expireLeases } = createTestBelfry({ sinks: { orders: new ScriptedSink() } })
    await belfry.start()
    const [strict, lax] = [instance({ sinks: {} }), instance({ sinks: undefined } as never)]
    await strict.start()
    await lax.start()
    await strict.schedules.put('x', { every: '1h', to: 'orders' })
    crash()
    await expireLeases()
    await expect(strict.schedules.put('y', { every: '1h', to: 'orders' })).rejects.toMatchObject({
      code: 'SINK_UNKNOWN',
    })
    await lax.schedules.put('y', { at: AT.replace('2026', '2027'), to: 'orders' })
    const { text } = await lax.schedules.explain('y', AT.replace('2026', '2027'))
    expect(text).toContain('No live instance delivers to the sink "orders"')
  })

  it('sets the key of its messages, and passes the other options to the sink', async () => {
    const orders = new ScriptedSink()
    const { belfry, advance } = createTestBelfry({ sinks: { orders } })
    await belfry.start()
    await belfry.schedules.put('a', { at: AT, to: 'orders', toOptions: { key: 'user-1', topic: 't' } })
    await belfry.schedules.put('b', { at: AT, to: 'orders', toOptions: { key: 'user-1' } })
    await belfry.schedules.put('c', { at: AT, to: 'orders' })
    await advance('2s')
    expect(orders.delivered.map(({ schedule_id, key, options }) => [schedule_id, key, options])).toEqual([
      ['a', 'user-1', { topic: 't' }],
      ['b', 'user-1', undefined],
      ['c', 'c', undefined],
    ])
    expect(orders.delivered[0]?.startedAt).toBe(Date.parse(AT))
    await belfry.stop()
  })

  it('on an ordered sink sends the next message after the previous was delivered; otherwise it continues', async () => {
    const refuseFirst = each(({ generated_at, attempt }) => {
      const isFirst = generated_at === '2026-01-01T00:00:10.000Z'
      return isFirst && attempt < 5 ? no : { delivered: true }
    })
    const [strict, loose] = [new ScriptedSink({ ordered: true }), new ScriptedSink()]
    strict.script = refuseFirst
    loose.script = refuseFirst
    const { belfry, advance } = createTestBelfry({ sinks: { strict, loose } })
    await belfry.start()
    for (const to of ['strict', 'loose']) await belfry.schedules.put(to, { every: '10s', to, times: 3 })
    expect((await belfry.schedules.get('strict'))?.definition.overlap).toBe('queue-all')
    await advance('12s')
    await belfry.schedules.trigger('strict')
    await advance('5m')
    const times = (sink: ScriptedSink) => sink.delivered.map(({ generated_at }) => generated_at.slice(17, 19))
    expect(times(strict)).toEqual(['10', '12', '20', '30'])
    expect(times(loose)).toEqual(['20', '10', '30'])
    await belfry.stop()
  })
})

describe('schedules that share a key in an ordered sink', () => {
  /** The first message of `a` is refused four times, at 10, 11, 13 and 17 s, and is delivered at 25 s. */
  async function refused(delivery: DeliveryOptions = {}) {
    const strict = new ScriptedSink({ ordered: true, ...delivery })
    strict.script = each(({ schedule_id, generated_at, attempt }) => {
      const isFirst = schedule_id === 'a' && generated_at === '2026-01-01T00:00:10.000Z'
      return isFirst && attempt < 5 ? no : { delivered: true }
    })
    const scene = createTestBelfry({ sinks: { strict } })
    await scene.belfry.start()
    for (const [id, key, every] of [
      ['a', 'k', '10s'],
      ['b', 'k', '12s'],
      ['c', 'other', '13s'],
    ] as const) {
      await scene.belfry.schedules.put(id, { every, to: 'strict', toOptions: { key }, times: 2 })
    }
    const got = () => strict.delivered.map(({ schedule_id, generated_at }) => schedule_id + generated_at.slice(17, 19))
    return { ...scene, strict, got }
  }

  it('wait for each other during retries, and other keys do not wait', async () => {
    const { belfry, advance, runs, got } = await refused()
    await advance('24s')
    expect(got()).toEqual(['c13'])
    expect(await runs('a')).toMatchObject([
      { state: 'running', attempt: 4 },
      { state: 'waiting', waitsFor: 'key' },
    ])
    await belfry.schedules.trigger('b')
    await advance('1m')
    expect(got()).toEqual(['c13', 'a10', 'b12', 'a20', 'b24', 'b24', 'c26'])
    await belfry.stop()
  })

  it('use no slot of other keys meanwhile', async () => {
    const { belfry, advance, got } = await refused({ concurrency: 1, batch: 1, inFlight: 1 })
    await advance('14s')
    expect(got()).toEqual(['c13'])
    await belfry.stop()
  })

  it('continue in order on another instance, at once after a stop and after the lease following a crash', async () => {
    for (const end of ['stop', 'crash'] as const) {
      const { belfry, instance, advance, crash, expireLeases, strict, got } = await refused()
      await advance('18s')
      const other = instance({ sinks: { strict } })
      await other.start()
      if (end === 'stop') await belfry.stop()
      else crash()
      if (end === 'stop') await advance('1s')
      else await expireLeases()
      const shared = got().filter((message) => !message.startsWith('c'))
      expect(shared).toEqual(end === 'stop' ? ['a10', 'b12'] : ['a10', 'b12', 'a20', 'b24'])
      await other.stop()
    }
  })

  it('no longer wait after a permanent failure or a cancel', async () => {
    const { belfry, advance, runs, got } = await refused({ retry: { attempts: 2 } })
    await advance('13s')
    expect(got()).toEqual(['b12', 'c13'])
    expect(await runs('a')).toMatchObject([{ state: 'failed', attempt: 2 }])
    await belfry.stop()
    const again = await refused()
    await again.advance('18s')
    const [first] = await again.runs('a')
    await again.belfry.runs.cancel(first?.id ?? '')
    await again.advance('6s')
    expect(again.got()).toEqual(['c13', 'b12', 'a20', 'b24'])
    await again.belfry.stop()
  })
})

describe('a receiver that answers 410', () => {
  const gone: Delivery = { delivered: false, error: new Error('410'), retryable: false, pauseSchedule: 'answered 410' }

  it('has its schedule paused with the reason, and the message becomes a dead letter', async () => {
    const orders = new ScriptedSink()
    orders.script = each(() => gone)
    const { belfry, advance, runs } = createTestBelfry({ sinks: { orders } })
    await belfry.start()
    await belfry.schedules.put('a', { every: '1m', to: 'orders' })
    await advance('10m')
    expect(orders.calls).toHaveLength(1)
    expect(await belfry.schedules.get('a')).toMatchObject({ state: 'paused', pauseNote: 'answered 410' })
    expect(await runs('a')).toMatchObject([{ state: 'failed', attempt: 1, error: { message: '410' } }])
    orders.script = accept
    await belfry.schedules.resume('a')
    await advance('1m')
    expect(orders.delivered).toHaveLength(1)
    await belfry.stop()
  })

  it('does not pause a schedule whose target changed meanwhile', async () => {
    const orders = new ScriptedSink()
    const hold = orders.hold()
    const { belfry, advance } = createTestBelfry({ sinks: { orders } })
    await belfry.start()
    await belfry.schedules.put('a', { every: '1m', to: 'orders', toOptions: { url: 'old' } })
    await advance('61s')
    await belfry.schedules.patch('a', { toOptions: { url: 'new' } })
    hold.release(each(() => gone))
    await advance('1s')
    expect(await belfry.schedules.get('a')).toMatchObject({ state: 'active' })
    await belfry.stop()
  })

  it('is called again when the pause could not be written', async () => {
    const orders = new ScriptedSink()
    orders.script = each(() => gone)
    const { belfry, store, advance, runs } = createTestBelfry({ sinks: { orders } })
    const { pause } = store.schedules
    let isBroken = true
    Object.assign(store.schedules, {
      pause: (id: string, note: string | undefined) => {
        if (isBroken) throw new Error('lost')
        return pause.call(store.schedules, id, note)
      },
    })
    await belfry.start()
    await belfry.schedules.put('a', { at: AT, to: 'orders', onFinish: 'keep' })
    await belfry.schedules.put('a', { every: '1d', to: 'orders' })
    await belfry.schedules.trigger('a')
    await advance('1ms')
    expect(await runs('a')).toMatchObject([{ state: 'ready', failures: 1 }])
    isBroken = false
    await advance('5s')
    expect(await runs('a')).toMatchObject([{ state: 'failed', failures: 2 }])
    expect(await belfry.schedules.get('a')).toMatchObject({ state: 'paused' })
    await belfry.stop()
  })
})

describe('the delivery options of a sink', () => {
  const options: readonly [given: object, reason: RegExp][] = [
    [{ concurrency: 0 }, /concurrency is "0"/],
    [{ batch: 1.5 }, /batch is "1.5"/],
    [{ batch: 10, inFlight: 5 }, /less than one batch/],
    [{ linger: '1h' }, /linger/],
    [{ timeout: 0 }, /timeout/],
    [{ ordered: 'yes' }, /ordered/],
    [{ retry: { attempts: 0 } }, /retry.attempts/],
    [{ retries: 3 }, /did you mean "retry"|not an option/],
  ]

  it.each(options)('are checked: %j', (delivery, reason) => {
    const sink = new ScriptedSink(delivery)
    expect(() => createTestBelfry({ sinks: { orders: sink } })).toThrow(reason)
  })

  it('are checked: the object must be a sink', () => {
    expect(() => createTestBelfry({ sinks: { orders: {} as never } })).toThrow(/sink "orders": has no deliver/)
    expect(() => createTestBelfry({ sinks: [] as never })).toThrow(/sinks is/)
  })
})

describe('the log sink', () => {
  it('writes every event to the log', async () => {
    const lines: object[] = []
    const sink = log({ logger: { info: (fields) => void lines.push(fields) } })
    const { belfry, advance } = createTestBelfry({ sinks: { log: sink } })
    await belfry.start()
    await belfry.schedules.put('a', { at: AT, to: 'log', payload: { n: 1 } })
    await advance('2s')
    expect(lines).toMatchObject([
      { id: `a-${Date.parse(AT) / 1_000}`, schedule_id: 'a', payload: { n: 1 }, attempt: 1 },
    ])
    await expect(belfry.schedules.put('b', { at: AT, to: 'log', toOptions: { x: 1 } })).rejects.toThrow(/not an option/)
    await belfry.stop()
  })
})
