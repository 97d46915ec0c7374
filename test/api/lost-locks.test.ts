/** How and when a holder learns that it lost its lock. */
import { describe, expect, it } from 'vitest'
import { type Belfry, type Lock, LockLostError, type LockOptions } from '../../src/index.js'
import { createTestBelfry } from '../../src/testing/index.js'
import { type LogLine, recorder } from '../stores/recorder.js'

async function setup() {
  const lines: LogLine[] = []
  const kit = createTestBelfry({ logger: recorder(lines) })
  const rival = kit.instance()
  await kit.belfry.start()
  await rival.start()
  const lost: string[] = []
  kit.belfry.on('lock:lost', ({ name }) => void lost.push(name))
  const warnings = () => lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
  return { ...kit, rival, lost, warnings }
}

async function locked(belfry: Belfry, name: string, options?: LockOptions): Promise<Lock> {
  const lock = await belfry.lock(name, options)
  if (lock === undefined) throw new Error(`${name} is busy`)
  return lock
}

/** Resets the lock and takes it for the rival. The first holder has not noticed yet, as after a blocked event loop. */
async function takenBy(rival: Belfry, name: string): Promise<Lock> {
  await rival.locks.reset(name)
  return locked(rival, name)
}

describe('withLock', () => {
  it('rejects with LOCK_LOST and the value of its callback when another holder took the lock', async () => {
    const { belfry, rival, lost, warnings } = await setup()
    let signal: AbortSignal | undefined
    const work = belfry.withLock('a', async (lock) => {
      signal = lock.signal
      await takenBy(rival, 'a')
      expect(signal.aborted).toBe(false)
      return 42
    })
    const error: unknown = await work.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(LockLostError)
    expect(error).toMatchObject({ code: 'LOCK_LOST', value: 42, message: expect.stringContaining('"a"') })
    expect(signal?.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(lost).toEqual(['a'])
    expect(warnings()).toEqual(['a lock was lost'])
    expect(await rival.locks.inspect('a')).toHaveLength(1)
  })

  it('rejects with the error of its callback, and still reports the loss', async () => {
    const { belfry, rival, lost, warnings } = await setup()
    const work = belfry.withLock('a', async () => {
      await takenBy(rival, 'a')
      throw new Error('no')
    })
    await expect(work).rejects.toThrow('no')
    expect(lost).toEqual(['a'])
    expect(warnings()).toEqual(['a lock was lost'])
  })

  it('returns the value when its TTL has passed and no other holder took the lock', async () => {
    const { belfry, advance, lost } = await setup()
    const work = belfry.withLock('a', () => advance('11s').then(() => 42), { ttl: '10s', renew: false })
    expect(await work).toBe(42)
    // The signal fired at the TTL, because another holder could have taken the lock.
    expect(lost).toEqual(['a'])
    expect(await belfry.locks.inspect('a')).toEqual([])
  })

  it('returns the value when its callback has released the lock', async () => {
    const { belfry, rival, lost } = await setup()
    const value = await belfry.withLock('a', async (lock) => {
      expect(await lock.release()).toBe(true)
      await locked(rival, 'a')
      return 42
    })
    expect(value).toBe(42)
    expect(lost).toEqual([])
  })

  it('nested in another withLock on the same lock also rejects when the lock was lost', async () => {
    const { belfry, rival, advance, lost } = await setup()
    const outer = belfry.withLock(
      'a',
      async (holder) => {
        await belfry.withLock('a', () => 'in time', { holder })
        const inner = belfry.withLock('a', () => advance('11s').then(() => locked(rival, 'a')), { holder })
        await expect(inner).rejects.toMatchObject({ code: 'LOCK_LOST' })
        return 42
      },
      { ttl: '10s', renew: false },
    )
    await expect(outer).rejects.toMatchObject({ code: 'LOCK_LOST', value: 42 })
    expect(lost).toEqual(['a'])
  })

  it('rejects when the instance stops during the work', async () => {
    const { belfry, advance } = await setup()
    const work = belfry.withLock('a', async () => {
      const stopped = belfry.stop()
      await advance('1m')
      await stopped
      return 42
    })
    await expect(work).rejects.toMatchObject({ code: 'LOCK_LOST', value: 42 })
  })
})

describe('withLock on a store that does not answer the release', () => {
  const silent = { release: () => Promise.reject(new Error('gone')) }

  it('returns the value when the lease has not run out, and warns that the lock stays taken', async () => {
    const { belfry, store, lost, warnings } = await setup()
    Object.assign(store.leases, silent)
    expect(await belfry.withLock('a', () => 42)).toBe(42)
    expect(lost).toEqual([])
    expect(warnings()).toEqual([expect.stringMatching(/could not be released/)])
  })

  it('rejects when the lease may have expired', async () => {
    const { belfry, store, advance, lost } = await setup()
    Object.assign(store.leases, silent)
    const work = belfry.withLock('a', () => advance('9500ms'), { ttl: '10s', renew: false })
    await expect(work).rejects.toMatchObject({ code: 'LOCK_LOST' })
    expect(lost).toEqual(['a'])
  })
})

describe('a lock', () => {
  it('that was lost unnoticed reports it at release: by the return value, the signal and the event', async () => {
    const { belfry, rival, lost } = await setup()
    const lock = await locked(belfry, 'a')
    await takenBy(rival, 'a')
    expect(await lock.release()).toBe(false)
    expect(lock.signal.aborted).toBe(true)
    expect(lost).toEqual(['a'])
  })

  it('of `await using` that was lost unnoticed reports it by the event and a warning', async () => {
    const { belfry, rival, lost, warnings } = await setup()
    {
      await using lock = await belfry.lock('a')
      expect(lock).toBeDefined()
      await takenBy(rival, 'a')
    }
    expect(lost).toEqual(['a'])
    expect(warnings()).toEqual(['a lock was lost'])
  })

  it('whose TTL has passed can still be released by its holder while no other holder took it', async () => {
    const { belfry, advance } = await setup()
    const lock = await locked(belfry, 'a', { ttl: '10s', renew: false })
    await advance('1h')
    expect(await lock.release()).toBe(true)
  })

  it('that was granted to another program can be released after its TTL, until another holder took it', async () => {
    const { belfry, rival, advance } = await setup()
    const granted = await belfry.locks.grant('a', { ttl: '10s', holder: 'me' })
    const again = await belfry.locks.grant('b', { ttl: '10s', holder: 'me' })
    await advance('1m')
    await locked(rival, 'b')
    expect(await belfry.locks.releaseGrant('a', { token: granted?.token ?? 0, holder: 'me' })).toBe(true)
    expect(await belfry.locks.releaseGrant('b', { token: again?.token ?? 0, holder: 'me' })).toBe(false)
  })
})
