import { expect } from 'vitest'
import { area, grows, LONG_LEASE_MS, ODD_NAMES, PAST_LEASE_MS, SHORT_LEASE_MS } from './scene.js'

export const leases = area('leases', {
  'a free name is acquired with a token and an expiry': async (scene) => {
    const result = await scene.tryAcquire('l', 'a', { ttlMs: 60_000, instance: 'one' })
    expect(result.acquired).toBe(true)
    if (!result.acquired) return
    const { lease, now } = result
    const times = { acquiredAt: now, expiresAt: now + 60_000 }
    expect(lease).toEqual({ name: 'l', holder: 'a', instance: 'one', token: lease.token, ...times })
    expect(lease.token).toBeGreaterThanOrEqual(Math.floor(now * 1_000))
    expect(await scene.store.leases.inspect('l')).toEqual([lease])
    expect(await scene.store.leases.inspect('other')).toEqual([])
  },

  'a refused acquire returns until when the lease is held': async (scene) => {
    const lease = await scene.acquire('l', 'a')
    const result = await scene.tryAcquire('l', 'b')
    expect(result).toMatchObject({ acquired: false, until: lease.expiresAt })
    expect(await scene.store.leases.inspect('l')).toEqual([lease])
  },

  'of many acquires at once, one succeeds': async (scene) => {
    const asks = Array.from({ length: 20 }, (_, at) => scene.tryAcquire('l', `holder${at}`))
    expect((await Promise.all(asks)).filter(({ acquired }) => acquired)).toHaveLength(1)
  },

  'asking again extends, with the same token': async (scene) => {
    const first = await scene.acquire('l', 'a', { ttlMs: 60_000 })
    const second = await scene.acquire('l', 'a', { ttlMs: 120_000 })
    expect(second).toMatchObject({ token: first.token, acquiredAt: first.acquiredAt })
    expect(second.expiresAt).toBeGreaterThan(first.expiresAt)
  },

  'an expired lease can be acquired, with a higher token': async (scene) => {
    const first = await scene.acquire('l', 'a', { ttlMs: SHORT_LEASE_MS })
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.store.leases.inspect('l')).toEqual([])
    const second = await scene.acquire('l', 'b')
    expect(second.token).toBeGreaterThan(first.token)
  },

  'an old holder can neither renew, release nor extend its successor’s lease': async (scene) => {
    const { token } = await scene.acquire('l', 'a', { ttlMs: SHORT_LEASE_MS })
    await scene.elapse(PAST_LEASE_MS)
    const successor = await scene.acquire('l', 'b')
    const renewed = await scene.store.leases.renew([{ name: 'l', holder: 'a', token, ttlMs: 60_000 }])
    expect(renewed).toEqual([undefined])
    expect(await scene.store.leases.release({ name: 'l', holder: 'a' })).toBe(false)
    expect(await scene.tryAcquire('l', 'a')).toMatchObject({ acquired: false })
    expect(await scene.store.leases.inspect('l')).toEqual([successor])
  },

  'a holder may renew an expired lease that no other holder has acquired': async (scene) => {
    const { token } = await scene.acquire('l', 'a', { ttlMs: SHORT_LEASE_MS })
    await scene.elapse(PAST_LEASE_MS)
    const [lease] = await scene.store.leases.renew([{ name: 'l', holder: 'a', token, ttlMs: 60_000 }])
    expect(lease).toMatchObject({ token })
    expect(await scene.tryAcquire('l', 'b')).toMatchObject({ acquired: false })
  },

  'of a renewal and an acquire of an expired lease at once, one succeeds': async (scene) => {
    for (let round = 0; round < 5; round += 1) {
      const name = `l${round}`
      const { token } = await scene.acquire(name, 'a', { ttlMs: SHORT_LEASE_MS })
      await scene.elapse(PAST_LEASE_MS)
      const [[renewed], taken] = await Promise.all([
        scene.store.leases.renew([{ name, holder: 'a', token, ttlMs: LONG_LEASE_MS }]),
        scene.tryAcquire(name, 'b'),
      ])
      const holder = taken.acquired ? 'b' : 'a'
      expect(renewed === undefined).toBe(taken.acquired)
      expect(await scene.store.leases.inspect(name)).toMatchObject([{ holder }])
    }
  },

  'renewals come in a batch, and each compares holder and token': async (scene) => {
    const one = await scene.acquire('one', 'a', { ttlMs: 60_000 })
    const two = await scene.acquire('two', 'a', { ttlMs: 60_000 })
    const ttlMs = 120_000
    const results = await scene.store.leases.renew([
      { name: 'one', holder: 'a', token: one.token, ttlMs },
      { name: 'two', holder: 'a', token: two.token - 1, ttlMs },
      { name: 'two', holder: 'b', token: two.token, ttlMs },
      { name: 'none', holder: 'a', token: 1, ttlMs },
    ])
    expect(results.map((lease) => lease?.name)).toEqual(['one', undefined, undefined, undefined])
    expect(results[0]?.expiresAt).toBeGreaterThan(one.expiresAt)
    expect(await scene.store.leases.inspect('two')).toEqual([two])
  },

  'only the holder releases, once': async (scene) => {
    const first = await scene.acquire('l', 'a')
    expect(await scene.store.leases.release({ name: 'l', holder: 'stranger' })).toBe(false)
    expect(await scene.store.leases.inspect('l')).toEqual([first])
    expect(await scene.store.leases.release({ name: 'l', holder: 'a' })).toBe(true)
    expect(await scene.store.leases.release({ name: 'l', holder: 'a' })).toBe(false)
    const second = await scene.acquire('l', 'b')
    expect(second.token).toBeGreaterThan(first.token)
  },

  'an expired lease is still its holder’s to release while no other holder has acquired it': async (scene) => {
    await scene.acquire('l', 'a', { ttlMs: SHORT_LEASE_MS })
    await scene.acquire('taken', 'a', { ttlMs: SHORT_LEASE_MS })
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.store.leases.release({ name: 'l', holder: 'a' })).toBe(true)
    await scene.acquire('taken', 'b')
    await scene.store.leases.release({ name: 'taken', holder: 'b' })
    expect(await scene.store.leases.release({ name: 'taken', holder: 'a' })).toBe(false)
  },

  'tokens grow with every new holder, also within one instant, and never fall below the floor': async (scene) => {
    const tokens: number[] = []
    for (let count = 0; count < 5; count += 1) {
      tokens.push((await scene.acquire('l', `a${count}`)).token)
      await scene.store.leases.release({ name: 'l', holder: `a${count}` })
    }
    const floor = (await scene.store.now()) * 1_000 + 60_000_000_000
    tokens.push((await scene.acquire('l', 'high', { floor })).token)
    expect(tokens.at(-1)).toBeGreaterThanOrEqual(floor)
    await scene.store.leases.release({ name: 'l', holder: 'high' })
    tokens.push((await scene.acquire('l', 'last')).token)
    expect(grows(tokens)).toBe(true)
  },

  'a lease has as many holders as permits': async (scene) => {
    const first = await scene.acquire('l', 'a', { permits: 2 })
    const second = await scene.acquire('l', 'b', { permits: 2 })
    expect(second.token).toBeGreaterThan(first.token)
    expect(await scene.tryAcquire('l', 'c', { permits: 2 })).toMatchObject({ acquired: false })
    expect(await scene.store.leases.inspect('l')).toHaveLength(2)
    await scene.store.leases.release({ name: 'l', holder: 'a' })
    expect(await scene.tryAcquire('l', 'c', { permits: 2 })).toMatchObject({ acquired: true })
  },

  'an expired permit is not taken from its holder while another is free': async (scene) => {
    const { token } = await scene.acquire('l', 'a', { permits: 3, ttlMs: SHORT_LEASE_MS })
    await scene.acquire('l', 'b', { permits: 3 })
    await scene.elapse(PAST_LEASE_MS)
    await scene.acquire('l', 'c', { permits: 3 })
    const [renewed] = await scene.store.leases.renew([{ name: 'l', holder: 'a', token, ttlMs: 60_000 }])
    expect(renewed).toBeDefined()
    expect(await scene.store.leases.inspect('l')).toHaveLength(3)
  },

  'a lease released before its minimum hold stays taken until then, and cannot be renewed': async (scene) => {
    const lease = await scene.acquire('l', 'a', { ttlMs: 60_000 })
    expect(await scene.store.leases.release({ name: 'l', holder: 'a', minHoldMs: 600 })).toBe(true)
    const [held] = await scene.store.leases.inspect('l')
    expect(held).toMatchObject({ released: true, expiresAt: lease.acquiredAt + 600 })
    expect(await scene.store.leases.renew([{ ...lease, ttlMs: 60_000 }])).toEqual([undefined])
    expect(await scene.store.leases.release({ name: 'l', holder: 'a' })).toBe(false)
    expect(await scene.tryAcquire('l', 'b')).toMatchObject({ acquired: false, until: lease.acquiredAt + 600 })
    await scene.elapse(650)
    expect(await scene.tryAcquire('l', 'b')).toMatchObject({ acquired: true })
  },

  'a release after the minimum hold frees the lease at once': async (scene) => {
    await scene.acquire('l', 'a')
    await scene.elapse(60)
    await scene.store.leases.release({ name: 'l', holder: 'a', minHoldMs: 50 })
    expect(await scene.tryAcquire('l', 'b')).toMatchObject({ acquired: true })
  },

  'a reset takes the lease from all its holders': async (scene) => {
    const lease = await scene.acquire('l', 'a', { permits: 2 })
    await scene.acquire('l', 'b', { permits: 2 })
    expect(await scene.store.leases.reset('l')).toBe(2)
    expect(await scene.store.leases.reset('l')).toBe(0)
    expect(await scene.store.leases.renew([{ ...lease, ttlMs: 60_000 }])).toEqual([undefined])
    expect((await scene.acquire('l', 'c')).token).toBeGreaterThan(lease.token)
  },

  'leases are listed in order of name, by prefix, page by page': async (scene) => {
    for (const name of ['b/2', 'a/1', 'b/1', 'b/3']) await scene.acquire(name, 'x')
    await scene.acquire('b/ended', 'x', { ttlMs: SHORT_LEASE_MS })
    await scene.elapse(PAST_LEASE_MS)
    const list = scene.store.leases.list
    expect((await list({ limit: 10 })).items.map(({ name }) => name)).toEqual(['a/1', 'b/1', 'b/2', 'b/3'])
    const page = await list({ prefix: 'b/', limit: 2 })
    expect(page.items.map(({ name }) => name)).toEqual(['b/1', 'b/2'])
    const next = await list({ prefix: 'b/', limit: 2, ...(page.next === undefined ? {} : { after: page.next }) })
    expect(next.items.map(({ name }) => name)).toEqual(['b/3'])
    expect(next.next).toBeUndefined()
    for (const name of ODD_NAMES) await scene.acquire(name, 'x')
    const odd: string[] = []
    for (let after: { after?: string } | undefined = {}; after !== undefined; ) {
      const { items, next } = await list({ prefix: 'o/', limit: 1, ...after })
      odd.push(...items.map(({ name }) => name))
      after = next === undefined || odd.length > ODD_NAMES.length ? undefined : { after: next }
    }
    expect(odd.sort()).toEqual([...ODD_NAMES].sort())
  },
})
