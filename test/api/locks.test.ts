import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { Belfry, Lock, LockOptions } from '../../src/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

async function setup() {
  const kit = createTestBelfry()
  const rival = kit.instance()
  await kit.belfry.start()
  await rival.start()
  return { ...kit, rival }
}

async function locked(belfry: Belfry, name: string, options?: LockOptions): Promise<Lock> {
  const lock = await belfry.lock(name, options)
  if (lock === undefined) throw new Error(`${name} is busy`)
  return lock
}

describe('the holder of a lock', () => {
  it('is named by LOCK_BUSY, with what it calls itself, host, process, since when and until when', async () => {
    const { belfry, instance } = createTestBelfry()
    await belfry.lock('a', { as: 'nightly import', ttl: '15s' })
    const busy = instance().withLock('a', () => {})
    await expect(busy).rejects.toMatchObject({
      code: 'LOCK_BUSY',
      message: `the lock "a" is held by nightly import on ${hostname()} pid ${process.pid} since 2026-01-01T00:00:00Z, until 2026-01-01T00:00:15Z unless it is renewed`,
    })
    await expect(belfry.lock('b', { as: '' })).rejects.toMatchObject({ code: 'NAME_INVALID' })
  })
})

describe('a lock', () => {
  it('has one holder at a time, in this process or another, and is free after its release', async () => {
    const { belfry, rival } = await setup()
    const lock = await locked(belfry, 'invoice:42')
    expect(await belfry.lock('invoice:42')).toBeUndefined()
    expect(await rival.lock('invoice:42')).toBeUndefined()
    expect(await lock.release()).toBe(true)
    expect(await lock.release()).toBe(false)
    const next = await locked(rival, 'invoice:42')
    expect(next.token).toBeGreaterThan(lock.token)
  })

  it('is renewed for as long as it is held, through hours of work', async () => {
    const { belfry, rival, advance } = await setup()
    const lock = await locked(belfry, 'a', { ttl: '30s' })
    await advance('3h')
    expect(lock.signal.aborted).toBe(false)
    expect(await rival.lock('a')).toBeUndefined()
    await lock.release()
    expect(await rival.lock('a')).toBeDefined()
  })

  it('is renewed when other locks were acquired and released before it', async () => {
    const { belfry, rival, advance } = await setup()
    for (const name of ['b', 'c', 'd']) {
      const other = await locked(belfry, name, { ttl: '30s' })
      await advance('5s')
      await other.release()
    }
    const lock = await locked(belfry, 'a', { ttl: '30s' })
    await advance('3h')
    expect(lock.signal.aborted).toBe(false)
    expect(await rival.lock('a')).toBeUndefined()
  })

  it('with a short TTL is renewed in time while one with a long TTL is held', async () => {
    const { belfry, rival, advance } = await setup()
    await locked(belfry, 'long', { ttl: '1h' })
    const lock = await locked(belfry, 'a', { ttl: '3s' })
    await advance('1m')
    expect(lock.signal.aborted).toBe(false)
    expect(await rival.lock('a')).toBeUndefined()
  })

  it('with renew: false fires its signal before the TTL is over, and is free after it', async () => {
    const { belfry, rival, advance } = await setup()
    const lock = await locked(belfry, 'a', { ttl: '10s', renew: false })
    await advance('8900ms')
    expect(lock.signal.aborted).toBe(false)
    await advance('200ms')
    expect(lock.signal.aborted).toBe(true)
    expect(lock.signal.reason).toMatchObject({ code: 'LEASE_LOST', message: expect.stringMatching(/"a".*not renewed/) })
    expect(await rival.lock('a')).toBeUndefined()
    await advance('1s')
    expect(await rival.lock('a')).toBeDefined()
    expect(await lock.release()).toBe(false)
  })

  it('is renewed at its own heartbeat, at most a third of the TTL', async () => {
    const { belfry, rival, advance } = await setup()
    const lock = await locked(belfry, 'a', { ttl: '9s', heartbeat: '3s' })
    await advance('1h')
    expect(lock.signal.aborted).toBe(false)
    expect(await rival.lock('a')).toBeUndefined()
  })

  it('is released at the end of `await using`, also when the work throws', async () => {
    const { belfry } = await setup()
    const work = async () => {
      await using lock = await belfry.lock('a')
      expect(lock).toBeDefined()
      expect(await belfry.locks.inspect('a')).toHaveLength(1)
      throw new Error('no')
    }
    await expect(work()).rejects.toThrow('no')
    expect(await belfry.locks.inspect('a')).toEqual([])
  })

  it('is held by withLock during the callback; its value is returned, and a busy lock throws LOCK_BUSY', async () => {
    const { belfry, rival } = await setup()
    const value = await belfry.withLock('a', async ({ token, signal }) => {
      expect(token).toBeGreaterThan(0)
      expect(signal.aborted).toBe(false)
      await expect(rival.withLock('a', () => 'never')).rejects.toMatchObject({ code: 'LOCK_BUSY' })
      return 42
    })
    expect(value).toBe(42)
    const failing = belfry.withLock('a', () => {
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await belfry.locks.inspect('a')).toEqual([])
  })

  it('with permits has up to that many holders', async () => {
    const { belfry, rival } = await setup()
    const options = { permits: 3 }
    const locks = [
      await locked(belfry, 'a', options),
      await locked(rival, 'a', options),
      await locked(belfry, 'a', options),
    ]
    expect(await rival.lock('a', options)).toBeUndefined()
    expect(new Set(locks.map(({ token }) => token)).size).toBe(3)
    expect(await belfry.locks.inspect('a')).toHaveLength(3)
    await locks[1]?.release()
    expect(await belfry.lock('a', options)).toBeDefined()
    expect(await belfry.lock('a', options)).toBeUndefined()
  })

  it('is handed to waiters in order of arrival', async () => {
    const { belfry, rival, advance, clock } = await setup()
    const first = await locked(belfry, 'a')
    const order: string[] = []
    const wait = async (name: string, by: Belfry) => {
      const lock = await locked(by, 'a', { wait: '1m' })
      order.push(name)
      await new Promise<void>((resolve) => clock.after(5_000, resolve))
      await lock.release()
    }
    const waits: Promise<void>[] = []
    for (const [at, name] of ['one', 'two', 'three', 'four', 'five'].entries()) {
      waits.push(wait(name, at % 2 === 0 ? rival : belfry))
      await advance('100ms')
    }
    await advance('3s')
    // A caller that does not wait cannot overtake the waiter queue.
    await first.release()
    expect(await belfry.lock('a')).toBeUndefined()
    await advance('30s')
    await Promise.all(waits)
    expect(order).toEqual(['one', 'two', 'three', 'four', 'five'])
  })

  it('returns undefined after `wait`, and leaves no entry in the waiter queue', async () => {
    const { belfry, rival, advance } = await setup()
    const lock = await locked(belfry, 'a')
    let answered: Lock | undefined | 'pending' = 'pending'
    void rival.lock('a', { wait: '5s' }).then((answer) => {
      answered = answer
    })
    await advance('4900ms')
    expect(answered).toBe('pending')
    await advance('200ms')
    expect(answered).toBeUndefined()
    await lock.release()
    expect(await belfry.locks.inspect('a')).toEqual([])
    expect(await belfry.lock('a')).toBeDefined()
  })

  it('that is released early stays taken until its minimum hold time is over', async () => {
    const { belfry, rival, advance } = await setup()
    const lock = await locked(belfry, 'a', { minHold: '1m' })
    await advance('10s')
    expect(await lock.release()).toBe(true)
    expect(await belfry.locks.inspect('a')).toMatchObject([{ released: true }])
    expect(await rival.lock('a')).toBeUndefined()
    expect(await belfry.lock('a')).toBeUndefined()
    await advance('49s')
    expect(await rival.lock('a')).toBeUndefined()
    await advance('2s')
    expect(await rival.lock('a')).toBeDefined()
  })

  it('can be acquired again by its holder, with the same token, and is freed by as many releases', async () => {
    const { belfry, rival } = await setup()
    const outer = await locked(belfry, 'a')
    const inner = await locked(belfry, 'a', { holder: outer })
    expect(inner.token).toBe(outer.token)
    expect(await belfry.locks.inspect('a')).toHaveLength(1)
    expect(await outer.release()).toBe(true)
    expect(await rival.lock('a')).toBeUndefined()
    expect(inner.signal.aborted).toBe(false)
    expect(await inner.release()).toBe(true)
    expect(await rival.lock('a')).toBeDefined()
    await expect(belfry.lock('a', { holder: outer })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  it('cannot be acquired with another holder’s name', async () => {
    const { belfry } = await setup()
    const holder = await locked(belfry, 'a')
    await expect(belfry.lock('b', { holder })).rejects.toThrow('lock "b": the holder given holds "a"')
    expect(await belfry.locks.inspect('b')).toEqual([])
  })

  it('lasts as long as `extend` says, and is renewed from then on', async () => {
    const { belfry, rival, advance, clock } = await setup()
    const lock = await locked(belfry, 'a', { ttl: '30s' })
    expect(await lock.extend('10m')).toBe(true)
    expect((await belfry.locks.inspect('a'))[0]?.expiresAt).toBe(clock.now() + 600_000)
    // An extension to 2 s makes the renewals more frequent, so the lock is still held after a minute.
    expect(await lock.extend('2s')).toBe(true)
    await advance('1m')
    expect(lock.signal.aborted).toBe(false)
    expect(await rival.lock('a')).toBeUndefined()
    const slow = await locked(belfry, 'b', { ttl: '30s', heartbeat: '10s' })
    await slow.extend('6s')
    await advance('1m')
    expect(slow.signal.aborted).toBe(false)
  })

  it('that has expired can be regained by `extend` while no other holder took it', async () => {
    const { belfry, rival, advance } = await setup()
    const lock = await locked(belfry, 'a', { ttl: '10s', renew: false })
    await advance('15s')
    expect(lock.signal.aborted).toBe(true)
    expect(await belfry.locks.inspect('a')).toEqual([])
    expect(await lock.extend('10s')).toBe(true)
    expect(lock.signal.aborted).toBe(false)
    expect(await rival.lock('a')).toBeUndefined()
    await advance('15s')
    const next = await locked(rival, 'a')
    expect(await lock.extend('10s')).toBe(false)
    expect(await belfry.locks.inspect('a')).toMatchObject([{ token: next.token }])
  })

  it('that expired during an outage is renewed again after `extend` regained it', async () => {
    const { belfry, rival, advance, store } = await setup()
    const lock = await locked(belfry, 'a', { ttl: '10s' })
    let isDown = true
    const { renew } = store.leases
    const shaky: typeof renew = (requests) => (isDown ? Promise.reject(new Error('gone')) : renew(requests))
    Object.assign(store.leases, { renew: shaky })
    await advance('15s')
    expect(lock.signal.aborted).toBe(true)
    isDown = false
    expect(await lock.extend('10s')).toBe(true)
    await advance('1h')
    expect(lock.signal.aborted).toBe(false)
    expect(await rival.lock('a')).toBeUndefined()
  })

  it('is lost in time when renewals hang, also when it was acquired during the hang', async () => {
    const { belfry, advance, store } = await setup()
    const first = await locked(belfry, 'a', { ttl: '8s' })
    Object.assign(store.leases, { renew: () => new Promise(() => {}) })
    await advance('4s')
    const second = await locked(belfry, 'b', { ttl: '4s' })
    await advance('3s')
    expect([first.signal.aborted, second.signal.aborted]).toEqual([false, false])
    await advance('1s')
    expect([first.signal.aborted, second.signal.aborted]).toEqual([true, true])
  })

  it('that is released during an extension leaves nothing behind', async () => {
    const { belfry, rival, advance } = await setup()
    const lost: string[] = []
    belfry.on('lock:lost', ({ name }) => void lost.push(name))
    const lock = await locked(belfry, 'a', { ttl: '8s' })
    await advance('3s')
    await Promise.all([lock.extend('1m'), lock.release()])
    await advance('5m')
    expect(lost).toEqual([])
    expect(await rival.lock('a')).toBeDefined()
  })

  it('cannot be extended after its release', async () => {
    const { belfry, rival } = await setup()
    const lock = await locked(belfry, 'a')
    await lock.release()
    expect(await lock.extend('1h')).toBe(false)
    expect(await rival.lock('a')).toBeDefined()
  })
})

describe('locks', () => {
  it('are listed by name, page by page, with holder, token, age and expiry', async () => {
    const { belfry, rival, clock, advance } = await setup()
    const acquiredAt = clock.now()
    const lock = await locked(belfry, 'b', { ttl: '30s' })
    await locked(rival, 'a')
    await locked(rival, 'c')
    await advance('1s')
    const page = await belfry.locks.list({ limit: 2 })
    expect(page.items.map(({ name, instance }) => [name, instance])).toEqual([
      ['a', rival.instance],
      ['b', belfry.instance],
    ])
    expect(page.items[1]).toMatchObject({ token: lock.token, acquiredAt, expiresAt: acquiredAt + 30_000 })
    const rest = await belfry.locks.list({ limit: 2, ...(page.next === undefined ? {} : { after: page.next }) })
    expect(rest.items.map(({ name }) => name)).toEqual(['c'])
    expect((await belfry.locks.list({ prefix: 'b' })).items).toHaveLength(1)
  })

  it('are taken from their holders by `reset`: the signals fire, and other callers can acquire them', async () => {
    const { belfry, rival, advance } = await setup()
    const lost: string[] = []
    belfry.on('lock:lost', ({ name, token }) => lost.push(`${name} ${token === lock.token}`))
    const lock = await locked(belfry, 'a', { ttl: '30s' })
    expect(await rival.locks.reset('a')).toBe(1)
    expect(await rival.locks.reset('a')).toBe(0)
    const next = await locked(rival, 'a')
    expect(next.token).toBeGreaterThan(lock.token)
    await advance('30s')
    expect(lock.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(lost).toEqual(['a true'])
    expect(await lock.release()).toBe(false)
    expect(await belfry.locks.inspect('a')).toMatchObject([{ token: next.token }])
  })

  it('are all released when the instance stops, and waiting calls are rejected', async () => {
    const { belfry, rival, advance } = await setup()
    const lock = await locked(belfry, 'mine', { minHold: '1h' })
    await locked(rival, 'theirs')
    const waiting = belfry.lock('theirs', { wait: '1h' })
    const answer = expect(waiting).rejects.toMatchObject({ code: 'NOT_RUNNING' })
    await advance('1s')
    const stopped = belfry.stop()
    await advance('1s')
    await stopped
    await answer
    expect(await rival.locks.inspect('mine')).toEqual([])
    expect(await lock.release()).toBe(false)
    await expect(belfry.lock('late')).rejects.toMatchObject({ code: 'NOT_RUNNING' })
    expect(await rival.locks.inspect('late')).toEqual([])
  })

  it('of a crashed instance are free after their TTL', async () => {
    const { belfry, rival, crash, advance } = await setup()
    await locked(belfry, 'a', { ttl: '30s' })
    crash(belfry)
    await advance('29s')
    expect(await rival.lock('a')).toBeUndefined()
    await advance('2s')
    expect(await rival.lock('a')).toBeDefined()
  })
})
