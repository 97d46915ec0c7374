import { describe, expect, it } from 'vitest'
import { FINISHED_STATES, type RunState } from '../../../core/runs/run.js'
import { type RunRecord, runRecord } from '../runs/run-codec.js'
import { Heap } from './heap.js'
import { RunLog } from './run-log.js'
import { SortedTexts } from './sorted-texts.js'

/** Numbers below `most` in an order without order, the same in each run. */
function* numbers(count: number, most: number): Generator<number> {
  let seed = 1
  for (let made = 0; made < count; made += 1) {
    seed = (seed * 48_271) % 2_147_483_647
    yield seed % most
  }
}

describe('sorted texts', () => {
  const plain = new Set<string>()
  const sorted = new SortedTexts()
  for (const number of numbers(20_000, 9_000)) {
    const text = `id/${number}`
    if (plain.has(text) && number % 3 === 0) {
      plain.delete(text)
      sorted.delete(text)
    } else {
      plain.add(text)
      sorted.add(text)
    }
  }
  sorted.delete('not there')
  const expected = [...plain].sort()

  it('are in order from any place on', () => {
    for (const place of ['', 'id/5', 'id/77', 'id/8999', 'id/9', 'z']) {
      expect([...sorted.from(place)]).toEqual(expected.filter((text) => text >= place))
    }
  })

  it('are in the reverse order before any place', () => {
    for (const place of [undefined, '', 'id/5', 'id/77', 'id/8999', 'z']) {
      const before = expected.filter((text) => place === undefined || text < place)
      expect([...sorted.before(place)]).toEqual(before.reverse())
    }
  })

  it('are none after the last is gone', () => {
    for (const text of expected) sorted.delete(text)
    expect([...sorted.from('')]).toEqual([])
    expect([...sorted.before(undefined)]).toEqual([])
  })
})

describe('the log of runs', () => {
  const log = new RunLog()
  const runs = new Set<RunRecord>()
  for (let order = 1; order <= 5_000; order += 1) {
    const run = newRun(order)
    runs.add(run)
    log.add(run)
  }
  const all = [...runs]
  for (const at of numbers(3_000, all.length)) {
    const run = all[at]
    if (run === undefined || !runs.has(run)) continue
    if (at % 4 === 0) {
      runs.delete(run)
      log.delete(run)
    } else {
      const from = run.state
      run.state = at > 1_000 ? 'succeeded' : 'running'
      log.moved(run, from)
    }
  }
  const expected = [...runs].sort((one, other) => other.order - one.order)

  it('lists the newest first, before any run', () => {
    for (const before of [Number.POSITIVE_INFINITY, 5_000, 1_024, 1_025, 513, 1]) {
      expect([...log.newestFirst(before, undefined)]).toEqual(expected.filter(({ order }) => order < before))
    }
  })

  it('finds all runs in a state, and looks at few others', () => {
    const found = [...log.newestFirst(Number.POSITIVE_INFINITY, ['running'])]
    const isRunning = ({ state }: RunRecord) => state === 'running'
    expect(found.filter(isRunning)).toEqual(expected.filter(isRunning))
    expect(found.length).toBeLessThan(1_100)
    expect(
      [...log.newestFirst(Number.POSITIVE_INFINITY, FINISHED_STATES as readonly RunState[])].length,
    ).toBeGreaterThan(0)
    expect([...log.newestFirst(Number.POSITIVE_INFINITY, ['waiting'])]).toEqual([])
  })
})

function newRun(order: number): RunRecord {
  const queue = { ready: new Heap<RunRecord>(() => false), delayed: new Heap<RunRecord>(() => false) }
  const fields = { target: { job: 'mail' }, origin: 'enqueue', payload: '', priority: 0, keep: 'all', queue } as const
  return runRecord(`run-${order}`, order, { ...fields, createdAt: 0, readyAt: 0 })
}
