import { describe, expect, it } from 'vitest'
import { DEFAULT_MISSED } from '../policies.js'
import { decidePut, decideRemove } from './declare.js'
import type { Schedule, ScheduleDefinition } from './schedule.js'

const NOON = Date.UTC(2026, 5, 1, 12)
const SECOND = 1_000

const minutely: ScheduleDefinition = {
  timeline: { every: 60 * SECOND },
  target: { job: 'digest' },
  payload: null,
  overlap: 'allow',
  missed: DEFAULT_MISSED,
  jitterMs: 0,
  priority: 0,
  keep: 'all',
  onFinish: 'keep',
}

/** A schedule that was put at noon, with no tick recorded since. */
function behind(over: Partial<Schedule> = {}): Schedule {
  const at = { anchor: NOON, cursor: NOON, createdAt: NOON, updatedAt: NOON }
  return { id: 'digest', version: 1, definition: minutely, ...at, ...over }
}

/** The unrecorded due ticks that are skipped when another timeline replaces the old one. */
function owed(existing: Schedule, timeline: ScheduleDefinition['timeline'], now: number) {
  const decision = decidePut('digest', { ...minutely, timeline }, existing, [], 2, now)
  return decision.outcome === 'updated' ? decision.takeBack.unrecorded : undefined
}

describe('a timeline that ends while due ticks are unrecorded', () => {
  const now = NOON + 200 * SECOND
  const range = { from: NOON + 60 * SECOND, to: NOON + 180 * SECOND, count: 3 }

  it('skips them as replaced, removed or paused', () => {
    expect(owed(behind(), { every: 5 * SECOND }, now)).toEqual([{ ...range, reason: 'replaced' }])
    expect(decideRemove(behind(), [], now).unrecorded).toEqual([{ ...range, reason: 'removed' }])
    const paused = behind({ pausedAt: NOON + 90 * SECOND })
    expect(owed(paused, { every: 5 * SECOND }, now)).toEqual([{ ...range, reason: 'paused' }])
  })

  it('leaves out an instant that the next timeline fires', () => {
    const again = NOON + 120 * SECOND
    const decided = owed(behind(), { at: [again, again + 3_600 * SECOND] }, again + SECOND)
    expect(decided).toEqual([{ from: again - 60 * SECOND, to: again - 60 * SECOND, count: 1, reason: 'replaced' }])
  })

  it('skips nothing when no tick was left, or when the timeline continues', () => {
    expect(decideRemove(behind({ remaining: 0 }), [], now).unrecorded).toEqual([])
    const decision = decidePut('digest', { ...minutely, payload: 1 }, behind(), [], 2, now)
    expect(decision).toMatchObject({ outcome: 'updated', schedule: { cursor: NOON }, takeBack: { unrecorded: [] } })
  })
})

describe('a timeline that replaces another', () => {
  const ticked = behind({ anchor: NOON + 900, cursor: NOON + 60_900 })

  it('has no tick in the same second as the old one’s last, because their events would share an id', () => {
    const at = [NOON + 60_950, NOON + 61_100]
    const decision = decidePut('digest', { ...minutely, timeline: { at } }, ticked, [], 2, NOON + 60_920)
    expect(decision.schedule.nextAt).toBe(NOON + 61_100)
  })

  it('may begin in the same second when the old one never ticked', () => {
    const timeline = { at: [NOON + 950] }
    const decision = decidePut(
      'digest',
      { ...minutely, timeline },
      behind({ cursor: NOON + 100, anchor: NOON + 100 }),
      [],
      2,
      NOON + 200,
    )
    expect(decision.schedule.nextAt).toBe(NOON + 950)
  })
})
