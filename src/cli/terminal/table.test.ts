import { expect, it } from 'vitest'
import { styleFor } from './style.js'
import { type Column, tableLines } from './table.js'

const COLUMNS: readonly Column<readonly [string, string, string]>[] = [
  { title: 'id', cell: ([id]) => id, least: 6 },
  { title: 'when', cell: ([, when]) => when, least: 6 },
  { title: 'p95', cell: ([, , p95]) => p95, right: true },
]
const lines = (rows: readonly (readonly [string, string, string])[], width: number) =>
  tableLines(rows, COLUMNS, styleFor({}), width)

it('is as wide as its contents', () => {
  expect(lines([['a', 'Every hour', '12 ms']], Number.POSITIVE_INFINITY)).toEqual([
    'ID  WHEN          P95',
    'a   Every hour  12 ms',
  ])
})

it('shortens the widest column that may be cut, as far as needed', () => {
  expect(lines([['a'.repeat(30), 'Every hour of every day', '12 ms']], 30)).toEqual([
    'ID          WHEN           P95',
    'aaaaaaaaa…  Every hour…  12 ms',
  ])
  expect(lines([['a'.repeat(30), 'Every hour', '12 ms']], 10)[1]).toBe('aaaaa…  Every…  12 ms')
})

it('escapes control characters in values', () => {
  expect(lines([['a\u001b[2J', 'b\nc', '']], 80)[1]).toBe('a\\u001b[2J  b c')
})

it('counts terminal columns, not letters: East Asian letters take two, combining marks none', () => {
  expect(
    lines(
      [
        ['日本/夜', 'x', '1'],
        ['e\u0301te', 'y', '2'],
        ['ascii', 'z', '3'],
      ],
      80,
    ),
  ).toEqual(['ID       WHEN  P95', '日本/夜  x       1', 'e\u0301te      y       2', 'ascii    z       3'])
  expect(lines([['日本日本日本日本', 'x', '1']], 18)[1]).toBe('日本日…  x       1')
})
