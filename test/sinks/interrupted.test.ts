import { afterEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { failure } from '../../src/core/errors.js'
import { silentLogger } from '../../src/core/logger.js'
import type { Store } from '../../src/core/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { SimulatedProcess } from '../../src/testing/simulated-process.js'
import { createTestBelfry } from '../../src/testing/test-belfry.js'
import { accept, away, no, ScriptedSink } from './scripted-sink.js'

const AT = '2026-01-01T00:00:01Z'
const UNIX = Date.parse(AT) / 1_000
const ids = (...names: string[]) => names.map((name) => `${name}-${UNIX}`)

const open: Belfry[] = []
afterEach(() => {
  open.splice(0)
})

/** Instances on one store, each of which can be paused at any point. */
function setup() {
  const clock = manualClock()
  const store = memory({ clock })
  const instance = async (orders: ScriptedSink, wrap: (store: Store) => Store = (given) => given) => {
    const simulated = new SimulatedProcess(wrap(store), clock)
    const belfry = createBelfry({
      ...{ store: simulated.store, clock: simulated.clock, sinks: { orders }, lease: '15s', logger: silentLogger },
    })
    await belfry.start()
    return { belfry, simulated }
  }
  const put = async (belfry: Belfry, ...names: string[]) => {
    await belfry.schedules.putMany(names.map((id) => [id, { at: AT, to: 'orders', onFinish: 'keep' }]))
  }
  const states = async () => {
    const { items } = await store.runs.list({ limit: 100 })
    return items.map(({ schedule, state, attempt }) => `${schedule} ${state} ${attempt}`).sort()
  }
  return { clock, store, instance, put, states }
}

describe('an instance that is paused past its lease', () => {
  it('during a call discards the answer, and another instance has delivered', async () => {
    const { clock, instance, put, states } = setup()
    const [first, second] = [new ScriptedSink(), new ScriptedSink()]
    const { belfry, simulated } = await instance(first)
    const hold = first.hold()
    await put(belfry, 'a', 'b')
    await clock.advance(2_000)
    expect(first.inFlight).toBe(2)
    simulated.suspend()
    await instance(second)
    await clock.advance(30_000)
    expect(second.ids.sort()).toEqual(ids('a', 'b'))
    simulated.resume()
    hold.release()
    await clock.advance(60_000)
    expect(await states()).toEqual(['a succeeded 2', 'b succeeded 2'])
    expect([...first.ids, ...second.ids].sort()).toEqual(ids('a', 'a', 'b', 'b'))
  })

  it('while it collects a batch sends nothing that another instance may have claimed by then', async () => {
    const { clock, instance, put, states } = setup()
    const [first, second] = [new ScriptedSink({ linger: '1s' }), new ScriptedSink()]
    const { belfry, simulated } = await instance(first)
    await put(belfry, 'a')
    await clock.advance(1_500)
    simulated.suspend()
    await instance(second)
    await clock.advance(30_000)
    simulated.resume()
    await clock.advance(60_000)
    expect(first.calls).toEqual([])
    expect(second.ids).toEqual(ids('a'))
    expect(await states()).toEqual(['a succeeded 2'])
  })
})

describe('an acknowledgement that cannot be written', () => {
  it('is written as soon as the store answers, and nothing is sent again meanwhile', async () => {
    const { clock, instance, put, states } = setup()
    const orders = new ScriptedSink()
    let isDown = true
    const { belfry } = await instance(orders, (store) => ({
      ...store,
      runs: {
        ...store.runs,
        settle: async (batch) => {
          if (isDown) throw failure('STORE_UNREACHABLE', 'the settle is lost')
          return store.runs.settle(batch)
        },
      },
    }))
    await put(belfry, 'a', 'b')
    await clock.advance(120_000)
    expect(orders.ids).toEqual(ids('a', 'b'))
    expect(await states()).toEqual(['a running 1', 'b running 1'])
    isDown = false
    await clock.advance(10_000)
    expect(await states()).toEqual(['a succeeded 1', 'b succeeded 1'])
    expect(orders.calls).toHaveLength(1)
  })

  it('is kept when it was written and only the answer was lost', async () => {
    const { clock, instance, put, states } = setup()
    const orders = new ScriptedSink()
    let lost = 0
    const { belfry } = await instance(orders, (store) => ({
      ...store,
      runs: {
        ...store.runs,
        settle: async (batch) => {
          const results = await store.runs.settle(batch)
          lost += 1
          if (lost <= 2) throw failure('STORE_UNREACHABLE', 'the answer is lost')
          return results
        },
      },
    }))
    await put(belfry, 'a')
    await clock.advance(60_000)
    expect(await states()).toEqual(['a succeeded 1'])
    expect(orders.calls).toHaveLength(1)
  })
})

describe('a message in a batch', () => {
  it('that is cancelled does not end the call of the others, and counts as delivered if it was', async () => {
    const orders = new ScriptedSink()
    const { belfry, advance, runs } = createTestBelfry({ sinks: { orders } })
    await belfry.start()
    let signal: AbortSignal | undefined
    const hold = orders.hold()
    const { script } = orders
    orders.script = (messages, given) => {
      signal = given
      return script(messages, given)
    }
    await belfry.schedules.putMany(['a', 'b', 'c'].map((id) => [id, { at: AT, to: 'orders' }]))
    await advance('2s')
    const [a, b] = [(await runs('a'))[0]?.id ?? '', (await runs('b'))[0]?.id ?? '']
    expect(await belfry.runs.cancel(a)).toBe('requested')
    expect(await belfry.runs.cancel(b)).toBe('requested')
    await advance('1s')
    expect(signal?.aborted).toBe(false)
    hold.release(async (messages) =>
      messages.map(({ schedule_id }) => (schedule_id === 'b' ? no : { delivered: true as const })),
    )
    await advance('1s')
    const states = await Promise.all(['a', 'b', 'c'].map(async (id) => (await runs(id))[0]?.state))
    expect(states).toEqual(['succeeded', 'cancelled', 'succeeded'])
    await belfry.stop()
  })
})

describe('an instance that stops', () => {
  it('sends its collected messages, waits for the answer, and closes its sinks last', async () => {
    const orders = new ScriptedSink({ linger: '10s' })
    const events: string[] = []
    orders.script = async (messages, signal) => {
      events.push('deliver')
      return accept(messages, signal)
    }
    const sink = Object.assign(orders, { close: async () => void events.push('close') })
    const { belfry, clock, advance, runs } = createTestBelfry({ sinks: { orders: sink } })
    await belfry.start()
    await belfry.schedules.put('a', { at: AT, to: 'orders' })
    await advance('2s')
    expect(orders.calls).toHaveLength(0)
    const stopped = belfry.stop()
    await clock.advance(1_000)
    await stopped
    expect(events).toEqual(['deliver', 'close'])
    expect(await runs('a')).toMatchObject([{ state: 'succeeded', attempt: 1 }])
  })

  it('releases messages that are not acknowledged within its grace, and another instance delivers them at once', async () => {
    const [orders, heir] = [new ScriptedSink(), new ScriptedSink()]
    orders.script = (_, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const { belfry, instance, clock, advance, runs } = createTestBelfry({ sinks: { orders } })
    await belfry.start()
    await belfry.schedules.put('a', { at: AT, to: 'orders' })
    await advance('2s')
    const other = instance({ sinks: { orders: heir } })
    await other.start()
    const stopped = belfry.stop({ grace: '2s' })
    await clock.advance(4_000)
    await stopped
    expect(heir.ids).toEqual(ids('a'))
    expect(await runs('a')).toMatchObject([{ state: 'succeeded', attempt: 2, failures: 0 }])
    await other.stop()
  })

  it('does not wait for an unreachable broker', async () => {
    const orders = new ScriptedSink()
    orders.script = away
    const { belfry, clock, advance, runs } = createTestBelfry({ sinks: { orders } })
    await belfry.start()
    await belfry.schedules.put('a', { at: AT, to: 'orders' })
    await advance('1m')
    let isStopped = false
    void belfry.stop().then(() => {
      isStopped = true
    })
    await clock.advance(10)
    expect(isStopped).toBe(true)
    expect(await runs('a')).toMatchObject([{ state: 'ready' }])
  })
})
