const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** A fraction of so many digits or fewer comes from a double. One with more digits holds more than a double can. */
const DOUBLE_DIGITS = 17

/**
 * Whether the double that a number's text is parsed to is written as that number again. A fraction with at most 17 digits counts
 * as exact, because programs write doubles so:
 *
 *     9007199254740992, 1e22, 0.1, 0.10000000000000001   →   true
 *     9007199254740993, 1e999, 1.000000000000000001      →   false
 */
export function isExactNumber(text: string): boolean {
  const given = digitsOf(text)
  if (given === undefined || given.digits === '') return true
  const value = Number(text)
  if (!Number.isFinite(value) || value === 0) return false
  if (given.exponent < 0 && given.digits.length <= DOUBLE_DIGITS) return true
  const held = digitsOf(String(value))
  return held?.digits === given.digits && held.exponent === given.exponent
}

/** The number as digits without zeros at either end, and a power of ten; undefined for text that is no JSON number. */
function digitsOf(text: string): { readonly digits: string; readonly exponent: number } | undefined {
  const [, whole = '', fraction = '', power = '0'] = NUMBER.exec(text) ?? []
  if (whole === '') return undefined
  const all = (whole + fraction).replace(/^0+/, '')
  const digits = all.replace(/0+$/, '')
  return { digits, exponent: Number(power) - fraction.length + (all.length - digits.length) }
}
