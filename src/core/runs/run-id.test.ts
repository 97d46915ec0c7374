import { expect, it } from 'vitest'
import { newMark, numberAfter, readRunId, runId, runNumber } from './run-id.js'

it('an id says the number and the mark of its run', () => {
  expect(runId(1041, '9f3a2c41b7d0')).toBe('1041-9f3a2c41b7d0')
  const mark = newMark()
  expect(readRunId(runId(12, mark))).toEqual({ number: 12, mark })
})

it('marks differ, so runs with one number have different ids', () => {
  expect(new Set(Array.from({ length: 10_000 }, () => runId(1, newMark()))).size).toBe(10_000)
})

it.each(['', '7', '7-', '7-1', '07-000000000001', '0-000000000001', '7-00000000000G', '7-0000000000001', 'r7'])(
  '%j is no id of a run',
  (text) => {
    expect(readRunId(text)).toBeUndefined()
  },
)

it('the number of an id is read alone where a token follows; of other texts it is 0', () => {
  expect(['1041-9f3a2c41b7d0', '', '7', '-1-2', '1.5-000000000001', 'r7-1'].map(runNumber)).toEqual([
    1041, 0, 0, 0, 0, 0,
  ])
})

it('a list goes on behind an id or a number', () => {
  expect(['7-000000000001', '7', '', 'x7', '7-1'].map(numberAfter)).toEqual([7, 7, 0, 0, 0])
})
