import { describe, expect, it } from 'vitest'
import { exponentialBackoff } from '../../core/runs/retry-policy.js'
import { manualClock } from '../../testing/manual-clock.js'
import type { SinkDefinition } from '../definitions.js'
import { Events } from '../events.js'
import { SinkHealth } from './sink-health.js'

const START = Date.UTC(2026, 0, 1)
const definition = {
  name: 'orders',
  batch: 10,
  concurrency: 1,
  retry: { attempts: 25, delayMs: exponentialBackoff(1_000) },
} as unknown as SinkDefinition

function doubtful() {
  const lines: string[] = []
  const line = (_: object, message: string) => void lines.push(message)
  const log = { debug: line, info: line, warn: line, error: line }
  const clock = manualClock(START)
  const health = new SinkHealth({ definition, clock, log, events: new Events(log) })
  return { health, clock, lines }
}

describe('the health of a sink', () => {
  it('is in doubt after one failure, and good again when another message gets through', () => {
    const { health, lines } = doubtful()
    health.failed(new Error('no'), health.epoch)
    expect([health.state, health.allowance, health.outage]).toEqual(['doubted', 1, undefined])
    health.reached(health.epoch)
    expect([health.state, health.allowance]).toEqual(['reachable', 4])
    health.reached(health.epoch)
    expect(health.allowance).toBe(Number.POSITIVE_INFINITY)
    expect(lines).toEqual([])
  })

  it('is an outage after a second failure: since when, why, and the time of the next probe', async () => {
    const { health, clock, lines } = doubtful()
    await clock.advance(1_000)
    health.failed(new Error('no quorum'), health.epoch)
    await clock.advance(500)
    health.failed(new Error('still none'), health.epoch)
    expect(health.outage).toMatchObject({ sink: 'orders', since: START + 1_000, error: { message: 'still none' } })
    const nextMs = Number(health.outage?.nextTryAt) - START - 1_500
    expect(nextMs).toBeGreaterThanOrEqual(500)
    expect(nextMs).toBeLessThanOrEqual(1_000)
    expect([health.allowance, Math.ceil(health.pauseMs)]).toEqual([0, nextMs])
    await clock.advance(nextMs)
    expect(health.allowance).toBe(1)
    health.reached(health.epoch)
    expect([health.state, health.outage]).toEqual(['reachable', undefined])
    expect(lines).toHaveLength(2)
  })

  it('is an outage when no other message is sent for a while', async () => {
    const { health, clock } = doubtful()
    let decided = 0
    health.onDecided = () => {
      decided += 1
    }
    health.failed(new Error('no'), health.epoch)
    await clock.advance(2_000)
    expect([health.state, decided]).toEqual(['down', 1])
  })

  it('does not change for calls that began before the failure', () => {
    const { health } = doubtful()
    const { epoch } = health
    health.failed(new Error('no'), epoch)
    health.failed(new Error('no'), epoch)
    health.reached(epoch)
    expect([health.state, health.allowance]).toEqual(['doubted', 1])
  })
})
