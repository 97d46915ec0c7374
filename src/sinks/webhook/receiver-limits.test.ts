import { beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { type Call, ReceiverLimits } from './receiver-limits.js'

const SHARE = 2
const MOST = 100
const dead = new URL('https://dead.example/a')
const other = new URL('https://other.example/')
const { signal } = new AbortController()

let clock = manualClock()
let limits = new ReceiverLimits(SHARE, MOST, clock)
beforeEach(() => {
  clock = manualClock()
  limits = new ReceiverLimits(SHARE, MOST, clock)
})

const begin = (url = dead, by = signal) => limits.begin(url.origin, url, by)

async function beginAll(count: number, url = dead): Promise<Call[]> {
  const begun = []
  for (let at = 0; at < count; at += 1) begun.push((await begin(url)) as Call)
  expect(begun).toEqual(Array(count).fill({ receiver: url.origin, since: expect.any(Number) }))
  return begun
}

async function ask(how: 'answered' | 'silent'): Promise<void> {
  for (const call of await beginAll(1)) limits.end(call, how)
}

/** Lets calls time out until the receiver is paused. */
async function fallSilent(): Promise<void> {
  for (let at = 0; at < 3; at += 1) await ask('silent')
}

describe('a receiver named by schedules', () => {
  it('has a limited share of the calls while it does not answer; further messages are deferred, and other receivers are not affected', async () => {
    await beginAll(SHARE)
    const beyond = begin()
    await beginAll(1, other)
    await clock.advance(3_000)
    const notNow = { delivered: false, untried: true, error: { code: 'SINK_UNREACHABLE' }, retryAfterMs: 1_000 }
    expect(await beyond).toMatchObject(notNow)
    expect(await begin()).toMatchObject(notNow)
  })

  it('has no limit once it has answered', async () => {
    const [first] = await beginAll(SHARE)
    const beyond = begin()
    limits.end(first as Call, 'answered')
    expect(await beyond).toMatchObject({ receiver: dead.origin })
    await beginAll(10 * SHARE)
  })

  it('is left alone after several timeouts in a row, longer each time, and probed by one call', async () => {
    await fallSilent()
    expect(await begin()).toMatchObject({ retryAfterMs: 1_000 })
    await beginAll(1, other)
    await clock.advance(1_000)
    const [probe] = await beginAll(1)
    expect(await begin()).toMatchObject({ delivered: false })
    limits.end(probe as Call, 'silent')
    expect(await begin()).toMatchObject({ retryAfterMs: 2_000 })
  })

  it('is treated normally again when it answers', async () => {
    await fallSilent()
    await clock.advance(1_000)
    await ask('answered')
    await beginAll(SHARE)
  })

  it('does not count as silent while it answers other calls', async () => {
    const slow = await beginAll(SHARE)
    limits.end(slow.pop() as Call, 'answered')
    slow.push(...(await beginAll(4)))
    await clock.advance(1_000)
    limits.end(slow.pop() as Call, 'answered')
    for (const call of slow) limits.end(call, 'silent')
    await beginAll(SHARE)
  })

  it('ends a deferred call when its signal fires', async () => {
    await beginAll(SHARE)
    const controller = new AbortController()
    const beyond = begin(dead, controller.signal)
    controller.abort('enough')
    expect(await beyond).toEqual({ delivered: false, untried: true, error: 'enough' })
  })
})
