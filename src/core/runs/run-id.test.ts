import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runIdNumber, runIdText } from './run-id.js'

const MOST = 2n ** 63n - 1n

describe('a run id', () => {
  it('encodes a number, and decodes to it', () => {
    expect(runIdText(0)).toBe('0000000000000')
    expect(runIdText('31')).toBe('000000000000z')
    expect(runIdText(MOST)).toBe('7zzzzzzzzzzzz')
    fc.assert(fc.property(fc.bigInt(0n, MOST), (number) => runIdNumber(runIdText(number)) === number))
  })

  it('sorts like its number', () => {
    const pair = fc.tuple(fc.bigInt(0n, MOST), fc.bigInt(0n, MOST))
    fc.assert(fc.property(pair, ([one, other]) => one < other === runIdText(one) < runIdText(other)))
  })

  it('is refused when it is malformed', () => {
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
