/**
 * Run ids as text. A store numbers its runs. Callers see the number as 13 characters of Crockford's base 32 in lower case,
 * which sort as the numbers do. The number has up to 63 bits, so it is a bigint.
 *
 *     0                    ↔ '0000000000000'
 *     9223372036854775807  ↔ '7zzzzzzzzzzzz'
 */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const VALUES: ReadonlyMap<string, number> = new Map(Array.from(DIGITS, (digit, value) => [digit, value]))

/** The first digit has three bits: 3 + 12 × 5 = 63. */
const RUN_ID = /^[0-7][0-9a-hjkmnp-tv-z]{12}$/

/** The upper part has 6 digits, the lower one 7. Each fits into a plain number, which is faster than a bigint. */
const LOWER_DIGITS = 7
const LOWER_BITS = 35n
const LOWER_MASK = (1n << LOWER_BITS) - 1n

export function runIdText(number: bigint | number | string): string {
  const whole = BigInt(number)
  return digitsOf(Number(whole >> LOWER_BITS), 6) + digitsOf(Number(whole & LOWER_MASK), LOWER_DIGITS)
}

/** Undefined for text that is not a run id. */
export function runIdNumber(text: string): bigint | undefined {
  if (!RUN_ID.test(text)) return undefined
  return (BigInt(numberOf(text.slice(0, -LOWER_DIGITS))) << LOWER_BITS) | BigInt(numberOf(text.slice(-LOWER_DIGITS)))
}

function digitsOf(value: number, count: number): string {
  let [text, rest] = ['', value]
  for (let place = 0; place < count; place += 1) {
    text = DIGITS.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  return text
}

function numberOf(digits: string): number {
  let value = 0
  for (const digit of digits) value = value * 32 + (VALUES.get(digit) ?? 0)
  return value
}
