import { describe, expect, it, vi } from 'vitest'
import type { Clock } from '../core/clock.js'
import { DELIVERED, type Undelivered } from '../core/sink.js'
import { Link, type Settle } from './broker-link.js'

const never = new Promise<never>(() => {})
const inTime = () => new AbortController().signal

/** A clock that the test advances, and a broker that can be unreachable. */
function setup({ owned = true, outcomeTimeoutMs }: { owned?: boolean; outcomeTimeoutMs?: number } = {}) {
  let now = 0
  const timers = new Map<() => void, number>()
  const after = (delayMs: number, callback: () => void) => {
    timers.set(callback, now + delayMs)
    return () => void timers.delete(callback)
  }
  const clock: Clock = { now: () => now, monotonic: () => now, after }
  const broker = { away: false, connections: 0, ended: 0, lose: () => {} }
  const link = new Link<number>({
    broker: 'the broker',
    owned,
    clock,
    ...(outcomeTimeoutMs === undefined ? {} : { outcomeTimeoutMs }),
    async connect(lost) {
      broker.connections += 1
      if (broker.away) throw new Error('connection refused')
      broker.lose = lost
      return broker.connections
    },
    end: () => {
      broker.ended += 1
    },
  })
  const send = vi.fn(async (_: number, settle: Settle) => settle(0, DELIVERED))
  const pass = (ms: number) => {
    now += ms
    for (const [callback, at] of [...timers]) if (at <= now && timers.delete(callback)) callback()
  }
  return { link, broker, send, pass }
}

describe('the link to a broker', () => {
  it('connects when it is first needed, once for all waiting calls', async () => {
    const { link, broker, send } = setup()
    expect(broker.connections).toBe(0)
    await Promise.all([link.deliver(1, inTime(), send), link.deliver(1, inTime(), send), link.open()])
    expect(broker.connections).toBe(1)
    expect(send.mock.calls.map(([connection]) => connection)).toEqual([1, 1])
  })

  it('reconnects after a loss, and disconnects when it is closed', async () => {
    const { link, broker, send } = setup()
    await link.deliver(1, inTime(), send)
    broker.lose()
    expect(await link.deliver(1, inTime(), send)).toEqual([DELIVERED])
    expect(broker.connections).toBe(2)
    await link.close()
    expect(broker.ended).toBe(2)
  })

  it('retries with a growing delay; meanwhile calls fail at once with the reason', async () => {
    const { link, broker, send, pass } = setup()
    broker.away = true
    for (let calls = 0; calls < 1_000; calls += 1) {
      const [outcome] = (await link.deliver(1, inTime(), send)) as Undelivered[]
      expect(outcome?.unreachable).toBe(true)
      expect(String(outcome?.error)).toMatch(/the broker is unreachable: connection refused/)
      pass(10)
    }
    expect(broker.connections).toBeGreaterThan(5)
    expect(broker.connections).toBeLessThan(20)
    broker.away = false
    pass(2_000)
    expect(await link.deliver(1, inTime(), send)).toEqual([DELIVERED])
  })

  it('keeps acknowledged messages when the signal fires, and reports the others as not delivered', async () => {
    const { link } = setup()
    const enough = new AbortController()
    const answer = link.deliver(2, enough.signal, async (_, settle) => {
      settle(1, DELIVERED)
      enough.abort()
      await never
    })
    expect(await answer).toMatchObject([{ delivered: false, error: { code: 'SINK_UNREACHABLE' } }, DELIVERED])
  })

  it('is replaced when a call gets no answer within its limit, however long the call itself may take', async () => {
    const { link, broker, send, pass } = setup({ outcomeTimeoutMs: 5_000 })
    let settle: Settle = () => {}
    const answer = link.deliver(3, inTime(), (_, tell) => {
      settle = tell
      return never
    })
    await Promise.resolve().then(() => {})
    pass(4_000)
    settle(0, DELIVERED)
    pass(4_000)
    settle(1, DELIVERED)
    pass(6_000)
    expect(await answer).toMatchObject([DELIVERED, DELIVERED, { delivered: false }])
    const silent = link.deliver(1, inTime(), () => never)
    await Promise.resolve().then(() => {})
    pass(6_000)
    expect(await silent).toMatchObject([{ delivered: false, unreachable: true }])
    expect(await link.deliver(1, inTime(), send)).toEqual([DELIVERED])
    expect([broker.connections, broker.ended]).toEqual([2, 1])
  })

  it('counts as lost when a call got no answer for a long time', async () => {
    const { link, broker, pass } = setup()
    const enough = new AbortController()
    const answer = link.deliver(1, enough.signal, () => never)
    await link.open()
    pass(5_000)
    enough.abort()
    expect(await answer).toMatchObject([{ delivered: false, unreachable: true }])
    await link.open()
    expect(broker).toMatchObject({ connections: 2, ended: 1 })
  })

  it('counts as lost when successive short calls got no answer, and no other call did', async () => {
    const { link, broker, send, pass } = setup()
    const silence = async () => {
      const enough = new AbortController()
      const answer = link.deliver(1, enough.signal, () => never)
      await link.open()
      pass(3_000)
      enough.abort()
      await answer
    }
    await silence()
    expect(await link.deliver(1, inTime(), send)).toEqual([DELIVERED])
    await silence()
    expect(broker).toMatchObject({ connections: 1, ended: 0 })
    await silence()
    await link.open()
    expect(broker).toMatchObject({ connections: 2, ended: 1 })
  })

  it('sends nothing more to the caller’s client while that has many unanswered calls', async () => {
    const { link, broker, send } = setup({ owned: false })
    for (let calls = 0; calls < 50; calls += 1) {
      const enough = new AbortController()
      const answer = link.deliver(1, enough.signal, () => never)
      await link.open()
      enough.abort()
      await answer
    }
    expect(await link.deliver(1, inTime(), send)).toMatchObject([{ delivered: false, unreachable: true }])
    expect(send).not.toHaveBeenCalled()
    expect(broker).toMatchObject({ connections: 1, ended: 0 })
  })
})
