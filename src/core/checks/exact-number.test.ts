import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isExactNumber } from './exact-number.js'
import { measureJson, numberAt } from './json-text.js'

describe('a number is exact', () => {
  it.each([
    '0',
    '-0',
    '0.0',
    '9007199254740992',
    '12345678901234567000',
    '1e22',
    '1.0e2',
    '0.1',
    '0.10000000000000001',
    '5e-324',
  ])('%s', (text) => expect(isExactNumber(text)).toBe(true))

  it.each([
    '9007199254740993',
    '-1234567890123456789',
    '1e999',
    '1e-999',
    '1.000000000000000001',
    '123456789012345678.5',
  ])('and %s is not', (text) => expect(isExactNumber(text)).toBe(false))

  it('if it is the text of any double', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => isExactNumber(String(value))),
      { seed: 1 },
    )
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => isExactNumber(value.toExponential())),
      { seed: 2 },
    )
  })

  it('if it is a whole number that is written again as it was', () => {
    const whole = fc.bigInt({ min: -(2n ** 69n), max: 2n ** 69n })
    fc.assert(
      fc.property(whole, (value) => isExactNumber(String(value)) === (String(Number(value)) === String(value))),
      { seed: 3, numRuns: 2_000 },
    )
  })
})

it('is found in any JSON, with its path', () => {
  const place = fc.array(fc.oneof(fc.string(), fc.nat(3)), { maxLength: 5 })
  fc.assert(
    fc.property(place, fc.jsonValue({ maxDepth: 2 }), (path, beside) => {
      const nested = path.reduceRight<string>(
        (inner, key) =>
          typeof key === 'number'
            ? `[ ${`${JSON.stringify(beside)}, `.repeat(key)}${inner}]`
            : `{ ${JSON.stringify(key)} : ${inner} }`,
        '9007199254740993',
      )
      JSON.parse(nested)
      const { inexactAt } = measureJson(nested)
      expect(numberAt(nested, inexactAt ?? -1)).toEqual({ number: '9007199254740993', path: path.map(String) })
    }),
    { seed: 4 },
  )
})
