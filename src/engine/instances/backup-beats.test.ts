import { describe, expect, it } from 'vitest'
import type { BeatStore } from '../../core/instances/beat-store.js'
import type { BeatRequest } from '../../core/instances/instance.js'
import type { RenewRequest } from '../../core/locks/lease.js'
import { manualClock } from '../../testing/manual-clock.js'
import { BackupBeats } from './backup-beats.js'
import type { BeatingInstance, RenewedLock } from './beat-messages.js'
import { SharedInstant } from './shared-instant.js'

const HEARTBEAT_MS = 4_000
const MAX_BLOCK_MS = 60_000

function scene() {
  const clock = manualClock()
  const turnedAt = new SharedInstant()
  turnedAt.moveTo(0)
  const beats: BeatRequest[] = []
  const renewals: RenewRequest[] = []
  const said: string[] = []
  const state = { alive: true, held: true, opened: 0, closed: 0 }
  const open = (): BeatStore => ({
    open: async () => {
      state.opened += 1
    },
    beat: async (request) => {
      beats.push(request)
      return { alive: state.alive, lost: [], cancel: [], now: 0 }
    },
    renew: async (requests) => {
      renewals.push(...requests)
      const lease = { acquiredAt: 0, expiresAt: 0 }
      return requests.map((request) => (state.held ? { ...request, ...lease } : undefined))
    },
    close: async () => {
      state.closed += 1
    },
  })
  const onDead = () => void said.push('dead')
  const blocks: (readonly string[])[] = []
  const onBlocked = (_: number, locks: readonly string[]) => void blocks.push(locks)
  const backup = new BackupBeats({ clock, open, turnedAt, maxBlockMs: MAX_BLOCK_MS, onBlocked, onDead })
  /** Calls the step again whenever it is due, as its loop does. */
  async function pass(ms: number): Promise<void> {
    const until = clock.monotonic() + ms
    while (clock.monotonic() < until) {
      const pauseMs = await backup.catchUp()
      await clock.advance(Math.min(pauseMs, until - clock.monotonic()))
    }
    await backup.catchUp()
  }
  return { clock, backup, turnedAt, beats, renewals, said, blocks, state, pass }
}

function beating(): { instance: BeatingInstance; main: SharedInstant; thread: SharedInstant } {
  const [main, thread] = [new SharedInstant(), new SharedInstant()]
  main.moveTo(0)
  const memory = { mainBeatAt: main.memory, threadBeatAt: thread.memory }
  return { instance: { id: 'one', leaseMs: 15_000, heartbeatMs: HEARTBEAT_MS, ...memory }, main, thread }
}

const lock: RenewedLock = { name: 'a', holder: 'h', token: 1, ttlMs: 16_000, everyMs: 4_000, sentAt: 0 }

describe('backup beats', () => {
  it('are sent when the main thread is late, and decide nothing about leases', async () => {
    const { backup, beats, pass } = scene()
    const { instance: one, thread } = beating()
    backup.setInstance(one)
    await pass(HEARTBEAT_MS * 1.4)
    expect(beats).toEqual([])
    await pass(HEARTBEAT_MS * 0.2)
    expect(beats).toEqual([{ instance: 'one', leaseMs: 15_000, attempts: [], claimsSettled: 0 }])
    expect(thread.at).toBe(HEARTBEAT_MS * 1.5)
  })

  it('are not sent while the main thread beats', async () => {
    const { backup, beats, clock, pass } = scene()
    const { instance: one, main } = beating()
    backup.setInstance(one)
    for (let turn = 0; turn < 10; turn += 1) {
      await pass(HEARTBEAT_MS)
      main.moveTo(clock.monotonic())
    }
    expect(beats).toEqual([])
  })

  it('stop when the store refuses one, and when the instance leaves', async () => {
    const refused = scene()
    refused.backup.setInstance(beating().instance)
    refused.state.alive = false
    await refused.pass(HEARTBEAT_MS * 5)
    expect(refused.beats).toHaveLength(1)
    const left = scene()
    left.backup.setInstance(beating().instance)
    left.backup.setInstance(undefined)
    await left.pass(HEARTBEAT_MS * 5)
    expect(left.beats).toEqual([])
  })

  it('renew a lock that is late, until it is removed from the list', async () => {
    const { backup, renewals, pass } = scene()
    backup.hold(lock)
    await pass(4_000 * 1.6)
    expect(renewals).toEqual([{ name: 'a', holder: 'h', token: 1, ttlMs: 16_000 }])
    backup.drop('h')
    await pass(60_000)
    expect(renewals).toHaveLength(1)
  })

  it('report a block once while it lasts, with the locks, and the next block again', async () => {
    const { backup, blocks, clock, turnedAt, pass } = scene()
    backup.hold(lock)
    await pass(4_000 * 1.4)
    expect(blocks).toEqual([])
    await pass(4_000 * 4)
    expect(blocks).toEqual([['a']])
    turnedAt.moveTo(clock.monotonic())
    await pass(1_000)
    await pass(30_000)
    expect(blocks).toEqual([['a'], ['a']])
  })

  it('forget a lock that another holder has', async () => {
    const { backup, renewals, state, pass } = scene()
    state.held = false
    backup.hold(lock)
    await pass(40_000)
    expect(renewals).toHaveLength(1)
  })

  it('connect early enough, never for a released lock, and no longer than needed', async () => {
    const { backup, state, turnedAt, clock, pass } = scene()
    backup.hold(lock)
    await pass(1_000)
    expect(state.opened).toBe(0)
    await pass(2_000)
    expect(state.opened).toBe(1)
    backup.drop('h')
    await pass(30_000)
    expect(state.closed).toBe(0)
    turnedAt.moveTo(clock.monotonic())
    await pass(40_000)
    expect(state.closed).toBe(1)
  })

  it('stop when the event loop was blocked for longer than maxBlock, which is logged once, and resume afterwards', async () => {
    const { backup, beats, turnedAt, said, clock, pass } = scene()
    backup.setInstance(beating().instance)
    backup.hold(lock)
    await pass(MAX_BLOCK_MS)
    expect(said).toEqual([])
    await pass(1_000)
    expect(said).toEqual(['dead'])
    const sent = beats.length
    await pass(MAX_BLOCK_MS)
    expect(beats).toHaveLength(sent)
    expect(said).toEqual(['dead'])
    turnedAt.moveTo(clock.monotonic())
    await pass(1_000)
    expect(beats).toHaveLength(sent + 1)
  })
})
