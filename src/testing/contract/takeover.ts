import { expect } from 'vitest'
import { lostMessage } from '../../core/runs/lost-message.js'
import { MAX_TAKEOVERS } from '../../core/runs/run.js'
import { area, ids, key, LONG_LEASE_MS, PAST_LEASE_MS, retryIn, SHORT_LEASE_MS } from './scene.js'

export const takeover = area('takeover', {
  'runs of a dead instance are ready again, and the next claim counts a takeover, not a failure': async (scene) => {
    await scene.join('dying', SHORT_LEASE_MS)
    await scene.join()
    const id = await scene.enqueue()
    const first = await scene.claimOne('dying')
    expect(await scene.store.runs.rescue(100)).toEqual({ rescued: 0, lost: 0 })
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.store.runs.rescue(100)).toEqual({ rescued: 1, lost: 0 })
    expect(await scene.run(id)).toMatchObject({ state: 'ready', takeovers: 0 })
    const second = await scene.claimOne()
    expect(second).toMatchObject({ id, attempt: 2, takeovers: 1, failures: 0, instance: 'one' })
    expect(second.token).toBeGreaterThan(first.token)
    expect(await scene.store.runs.rescue(100)).toEqual({ rescued: 0, lost: 0 })
  },

  'runs of live instances are not taken over': async (scene) => {
    await scene.join('dying', SHORT_LEASE_MS)
    await scene.join('steady', LONG_LEASE_MS)
    await scene.enqueue()
    const run = await scene.claimOne('steady')
    await scene.elapse(PAST_LEASE_MS)
    await scene.store.runs.rescue(100)
    expect(await scene.stateOf(run.id)).toBe('running')
    expect(await scene.beat('steady', [run])).toMatchObject({ alive: true, lost: [] })
  },

  'every beat of an instance that was declared dead is refused': async (scene) => {
    await scene.join('dying', SHORT_LEASE_MS)
    await scene.enqueue()
    const run = await scene.claimOne('dying')
    await scene.elapse(PAST_LEASE_MS)
    await scene.store.runs.rescue(100)
    expect(await scene.beat('dying', [run])).toMatchObject({ alive: false, lost: [run.id] })
    expect(await scene.beat('dying', [])).toMatchObject({ alive: false })
    expect(ids(await scene.store.instances.list())).toEqual([])
    expect(await scene.claim('dying')).toEqual([])
  },

  'a beat of an instance that never joined is refused': async (scene) => {
    expect(await scene.beat('stranger', [])).toMatchObject({ alive: false })
  },

  'a late beat is accepted until a takeover': async (scene) => {
    await scene.join('slow', SHORT_LEASE_MS)
    await scene.enqueue()
    const run = await scene.claimOne('slow')
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.beat('slow', [run])).toMatchObject({ alive: true, lost: [] })
    expect(await scene.store.runs.rescue(100)).toEqual({ rescued: 0, lost: 0 })
    expect(await scene.settle(run)).toBe('settled')
  },

  'of a late beat and an acquire of its run’s key at once, one succeeds': async (scene) => {
    for (let round = 0; round < 5; round += 1) {
      const name = `k${round}`
      await scene.join(`slow${round}`, SHORT_LEASE_MS)
      const id = await scene.enqueue({ key: key(name) })
      const run = await scene.claimOne(`slow${round}`)
      await scene.elapse(PAST_LEASE_MS)
      const [beat, taken] = await Promise.all([scene.beat(`slow${round}`, [run]), scene.tryAcquire(name, 'a')])
      expect(beat).toMatchObject({ alive: true, lost: taken.acquired ? [id] : [] })
      expect(await scene.store.leases.inspect(name)).toMatchObject([taken.acquired ? { holder: 'a' } : { run: id }])
      expect(await scene.settle(run)).toBe(taken.acquired ? 'stale' : 'settled')
    }
  },

  'a run that was asked to cancel is cancelled when its instance dies': async (scene) => {
    await scene.join('dying', SHORT_LEASE_MS)
    const id = await scene.enqueue()
    await scene.claimOne('dying')
    await scene.store.runs.cancel(id)
    await scene.elapse(PAST_LEASE_MS)
    await scene.store.runs.rescue(100)
    expect(await scene.stateOf(id)).toBe('cancelled')
  },

  'a run fails as LOST after too many takeovers': async (scene) => {
    const id = await scene.enqueue({ key: key('k') })
    for (let death = 0; death <= MAX_TAKEOVERS; death += 1) {
      await scene.join(`dying${death}`, SHORT_LEASE_MS)
      expect(await scene.claimOne(`dying${death}`)).toMatchObject({ id, takeovers: death })
      await scene.elapse(PAST_LEASE_MS)
      const given = await scene.store.runs.rescue(100)
      expect(given).toEqual(death < MAX_TAKEOVERS ? { rescued: 1, lost: 0 } : { rescued: 0, lost: 1 })
    }
    const message = lostMessage(MAX_TAKEOVERS + 1, `dying${MAX_TAKEOVERS}`)
    expect(await scene.run(id)).toMatchObject({ state: 'failed', error: { code: 'LOST', message } })
    expect(await scene.store.leases.inspect('k')).toEqual([])
  },

  'a rescue takes no more than its limit at a time, and the instance stays dead': async (scene) => {
    await scene.join('dying', SHORT_LEASE_MS)
    for (let count = 0; count < 3; count += 1) await scene.enqueue()
    expect(await scene.claim('dying')).toHaveLength(3)
    await scene.elapse(PAST_LEASE_MS)
    expect(await scene.store.runs.rescue(2)).toEqual({ rescued: 2, lost: 0 })
    expect(await scene.beat('dying', [])).toMatchObject({ alive: false })
    expect(await scene.store.runs.rescue(2)).toEqual({ rescued: 1, lost: 0 })
  },

  'two rescues at once take over each run once': async (scene) => {
    await scene.join('dying', SHORT_LEASE_MS)
    for (let count = 0; count < 5; count += 1) await scene.enqueue()
    await scene.claim('dying')
    await scene.elapse(PAST_LEASE_MS)
    const results = await Promise.all([scene.store.runs.rescue(100), scene.store.runs.rescue(100)])
    expect(results.reduce((sum, { rescued }) => sum + rescued, 0)).toBe(5)
  },

  'runs of an instance that leaves are ready at once, and no takeover is counted': async (scene) => {
    await scene.join('leaving')
    await scene.join()
    const id = await scene.enqueue({ key: key('k') })
    const first = await scene.claimOne('leaving')
    await scene.store.instances.leave('leaving')
    expect(await scene.settle(first)).toBe('stale')
    expect(await scene.claimOne()).toMatchObject({ id, attempt: 2, takeovers: 0 })
    expect(ids(await scene.store.instances.list())).toEqual(['one'])
    await scene.store.instances.leave('leaving')
  },

  'runs of an answered claim that the beat does not list are ready again': async (scene) => {
    await scene.join()
    await scene.enqueue()
    await scene.enqueue()
    const arrived = await scene.claimOne()
    const lost = await scene.claimOne()
    expect(await scene.beat('one', [arrived])).toMatchObject({ alive: true, lost: [] })
    expect(await scene.stateOf(arrived.id)).toBe('running')
    expect(await scene.claimOne()).toMatchObject({ id: lost.id, failures: 0, takeovers: 0 })
    expect(await scene.settle(lost)).toBe('stale')
  },

  'runs of a claim in flight stay with their instance': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const run = await scene.claimOne()
    const claimsSettled = scene.claimsOf('one') - 1
    const beat = { instance: 'one', leaseMs: LONG_LEASE_MS, attempts: [], claimsSettled }
    expect(await scene.store.instances.beat(beat)).toMatchObject({ alive: true })
    expect(await scene.stateOf(run.id)).toBe('running')
    expect(await scene.settle(run)).toBe('settled')
  },

  'a beat extends an attempt only with the newest token': async (scene) => {
    await scene.join()
    await scene.enqueue()
    const before = await scene.claimOne()
    await scene.settle(before, retryIn(0))
    const now = await scene.claimOne()
    expect((await scene.beat('one', [now])).lost).toEqual([])
    expect((await scene.beat('one', [before])).lost).toEqual([before.id])
  },

  'a beat returns which of its attempts were taken over': async (scene) => {
    await scene.join()
    await scene.join('two')
    await scene.enqueue()
    await scene.enqueue()
    const ended = await scene.claimOne()
    const others = await scene.claimOne('two')
    await scene.settle(ended)
    const { lost } = await scene.beat('one', [ended, others, { ...others, id: 'unknown' }])
    expect([...lost].sort()).toEqual([ended.id, others.id, 'unknown'].sort())
  },
})
