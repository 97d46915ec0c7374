import { describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { newId } from './new-id.js'

describe('a generated id', () => {
  it('is a UUID of version 7 with its creation time', () => {
    const id = newId(manualClock(Date.UTC(2026, 10, 18, 9)))
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Number.parseInt(id.slice(0, 13).replace('-', ''), 16)).toBe(Date.UTC(2026, 10, 18, 9))
  })

  it('sorts after all earlier ids, and never repeats', async () => {
    const clock = manualClock()
    const ids: string[] = []
    for (let at = 0; at < 100; at += 1) {
      ids.push(newId(clock))
      await clock.advance(1)
    }
    expect([...ids].sort()).toEqual(ids)
    const together = Array.from({ length: 10_000 }, () => newId(clock))
    expect(new Set(together).size).toBe(10_000)
  })
})
