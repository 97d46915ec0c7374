import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runIdNumber, runIdText } from './run-id.js'

const MOST = 2n ** 63n - 1n

describe('a run id', () => {
  it('is the text of a number, and gives it back', () => {
    expect(runIdText(0)).toBe('0000000000000')
    expect(runIdText('31')).toBe('000000000000z')
    expect(runIdText(MOST)).toBe('7zzzzzzzzzzzz')
    fc.assert(fc.property(fc.bigInt(0n, MOST), (number) => runIdNumber(runIdText(number)) === number))
  })

  it('sorts as its number does', () => {
    const pair = fc.tuple(fc.bigInt(0n, MOST), fc.bigInt(0n, MOST))
    fc.assert(fc.property(pair, ([one, other]) => one < other === runIdText(one) < runIdText(other)))
  })

  it('is refused when it is none', () => {
    for (const text of [
      '',
      '1',
      '8000000000000',
      '00000000000001',
      '000000000000Z',
      '000000000000i',
      ' 000000000000',
    ]) {
      expect(runIdNumber(text), text).toBeUndefined()
    }
  })
})
