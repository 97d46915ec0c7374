import { beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { Turns } from './turns.js'

const SHARE = 2
const dead = new URL('https://dead.example/a')
const other = new URL('https://other.example/')
const { signal } = new AbortController()

let clock = manualClock()
let turns = new Turns(SHARE, clock)
beforeEach(() => {
  clock = manualClock()
  turns = new Turns(SHARE, clock)
})

async function enterAll(count: number, url = dead): Promise<void> {
  for (let at = 0; at < count; at += 1) expect(await turns.enter(url, signal)).toBeUndefined()
}

/** Silent as often in a row as it takes to be left alone. */
async function fallSilent(): Promise<void> {
  for (let at = 0; at < 3; at += 1) {
    await enterAll(1)
    turns.left(dead, 'silent')
  }
}

describe('a receiver that schedules name', () => {
  it('has its share of the calls while it is silent; who comes beyond is told to come back, and others do not notice', async () => {
    await enterAll(SHARE)
    const beyond = turns.enter(dead, signal)
    await enterAll(1, other)
    await clock.advance(3_000)
    expect(await beyond).toMatchObject({ delivered: false, error: { code: 'SINK_UNREACHABLE' }, retryAfterMs: 1_000 })
    expect(await turns.enter(dead, signal)).toMatchObject({ delivered: false })
  })

  it('has as many as it likes once it has answered', async () => {
    await enterAll(SHARE)
    const beyond = turns.enter(dead, signal)
    turns.left(dead, 'answered')
    expect(await beyond).toBeUndefined()
    await enterAll(10 * SHARE)
  })

  it('is left alone when it was silent several times in a row, longer each time, and asked by one at a time', async () => {
    await fallSilent()
    expect(await turns.enter(dead, signal)).toMatchObject({ retryAfterMs: 1_000 })
    await enterAll(1, other)
    await clock.advance(1_000)
    await enterAll(1)
    expect(await turns.enter(dead, signal)).toMatchObject({ delivered: false })
    turns.left(dead, 'silent')
    expect(await turns.enter(dead, signal)).toMatchObject({ retryAfterMs: 2_000 })
  })

  it('is as any other again when it answers', async () => {
    await fallSilent()
    await clock.advance(1_000)
    await enterAll(1)
    turns.left(dead, 'answered')
    await enterAll(SHARE)
  })

  it('keeps nobody who is not waited for any more', async () => {
    await enterAll(SHARE)
    const controller = new AbortController()
    const beyond = turns.enter(dead, controller.signal)
    controller.abort('enough')
    expect(await beyond).toEqual({ delivered: false, error: 'enough' })
  })
})
