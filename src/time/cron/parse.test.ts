import { describe, expect, it, test } from 'vitest'
import { timeline } from '../index.js'

/** The first days (or times) on which an expression fires from 1 January 2026 on, a Thursday. */
function fires(cron: string, count: number, from = '2026-01-01T00:00:00Z'): string[] {
  const line = timeline(cron)
  const ticks = line.between(Date.parse(from) - 1, Date.parse('2100-01-01T00:00:00Z'), count)
  return ticks.map((tick) => new Date(tick).toISOString().replace(/:00\.000Z$/, ''))
}

const days = (cron: string, count: number, from?: string) => fires(cron, count, from).map((at) => at.slice(0, 10))
const times = (cron: string, count: number, from?: string) => fires(cron, count, from).map((at) => at.slice(11))

describe('the fields', () => {
  it('are minute, hour, day, month and weekday', () => {
    expect(fires('15 10 * * *', 2)).toEqual(['2026-01-01T10:15', '2026-01-02T10:15'])
    expect(fires('30 8 5 3 *', 2)).toEqual(['2026-03-05T08:30', '2027-03-05T08:30'])
  })

  it('may begin with a second, and end with a year', () => {
    expect(times('30 15 10 * * *', 1)).toEqual(['10:15:30.000Z'])
    expect(fires('0 0 0 1 1 * 2028,2030', 3)).toEqual(['2028-01-01T00:00', '2030-01-01T00:00'])
    expect(days('0 0 0 1 1 * 2026-2030/2', 9)).toEqual(['2026-01-01', '2028-01-01', '2030-01-01'])
  })

  it('default to second 0', () => {
    expect(times('15 10 * * *', 1)).toEqual(['10:15'])
  })

  it('are separated by any number of blanks and tabs', () => {
    expect(times(' \t15   10\t* * *  ', 1)).toEqual(['10:15'])
  })

  test('a year with a step matches the years divisible by the step', () => {
    expect(days('0 0 0 1 1 * */2', 2)).toEqual(['2026-01-01', '2028-01-01'])
    expect(days('0 0 0 1 1 * */4', 2)).toEqual(['2028-01-01', '2032-01-01'])
  })
})

describe('nicknames', () => {
  it.each([
    ['@yearly', '0 0 1 1 *'],
    ['@annually', '0 0 1 1 *'],
    ['@monthly', '0 0 1 * *'],
    ['@weekly', '0 0 * * 0'],
    ['@daily', '0 0 * * *'],
    ['@midnight', '0 0 * * *'],
    ['@hourly', '0 * * * *'],
    [' @daily\t', '0 0 * * *'],
  ])('%s means %s', (nickname, plain) => {
    expect(fires(nickname, 20)).toEqual(fires(plain, 20))
  })
})

describe('values', () => {
  it('are lists, ranges and steps', () => {
    expect(times('5,10,50 9 * * *', 3)).toEqual(['09:05', '09:10', '09:50'])
    expect(times('0 9-11 * * *', 4)).toEqual(['09:00', '10:00', '11:00', '09:00'])
    expect(times('*/20 * * * *', 4)).toEqual(['00:00', '00:20', '00:40', '01:00'])
    expect(times('5-59/15 9 * * *', 4)).toEqual(['09:05', '09:20', '09:35', '09:50'])
    expect(times('0,30-32,50-59/5 9 * * *', 6)).toEqual(['09:00', '09:30', '09:31', '09:32', '09:50', '09:55'])
  })

  it('wrap around when a range runs backwards', () => {
    expect(times('0 22-2 * * *', 6)).toEqual(['00:00', '01:00', '02:00', '22:00', '23:00', '00:00'])
    expect(times('0 22-3/2 * * *', 4)).toEqual(['00:00', '02:00', '22:00', '00:00'])
    expect(days('0 0 1 NOV-FEB *', 5)).toEqual(['2026-01-01', '2026-02-01', '2026-11-01', '2026-12-01', '2027-01-01'])
    expect(days('0 0 30-2 * *', 5)).toEqual(['2026-01-01', '2026-01-02', '2026-01-30', '2026-01-31', '2026-02-01'])
    expect(days('0 0 * * FRI-MON', 5)).toEqual(['2026-01-02', '2026-01-03', '2026-01-04', '2026-01-05', '2026-01-09'])
  })

  it('accept names of months and weekdays, in any case', () => {
    expect(days('30 8 * jan Mon', 2)).toEqual(['2026-01-05', '2026-01-12'])
    expect(days('0 0 1 Jul,DEC *', 2)).toEqual(['2026-07-01', '2026-12-01'])
    expect(days('0 0 * * mOn-wEd', 3)).toEqual(['2026-01-05', '2026-01-06', '2026-01-07'])
    expect(days('0 0 * * sun-sat/3', 3)).toEqual(['2026-01-03', '2026-01-04', '2026-01-07'])
  })

  it('accept Sunday as 0 and as 7', () => {
    for (const sunday of ['0', '7', 'SUN', '7-7', 'SUN-SUN'])
      expect(days(`0 0 * * ${sunday}`, 2)).toEqual(['2026-01-04', '2026-01-11'])
    expect(days('0 0 * * 5-7', 3)).toEqual(['2026-01-02', '2026-01-03', '2026-01-04'])
    expect(days('0 0 * * 7-2', 3)).toEqual(['2026-01-04', '2026-01-05', '2026-01-06'])
    expect(days('0 0 * * 0-7', 3)).toEqual(['2026-01-01', '2026-01-02', '2026-01-03'])
    expect(days('0 0 * * */2', 4)).toEqual(['2026-01-01', '2026-01-03', '2026-01-04', '2026-01-06'])
  })
})

describe('days of the month', () => {
  test('L is the last one', () => {
    expect(days('0 0 L * *', 3)).toEqual(['2026-01-31', '2026-02-28', '2026-03-31'])
    expect(days('0 0 L 2 *', 3)).toEqual(['2026-02-28', '2027-02-28', '2028-02-29'])
    expect(days('0 0 1,l * *', 3)).toEqual(['2026-01-01', '2026-01-31', '2026-02-01'])
  })

  test('L-3 is three days before the last', () => {
    expect(days('0 0 L-3 * *', 3)).toEqual(['2026-01-28', '2026-02-25', '2026-03-28'])
    expect(days('0 0 L-30 * *', 3)).toEqual(['2026-01-01', '2026-03-01', '2026-05-01'])
    expect(days('0 0 L-1,L * *', 4)).toEqual(['2026-01-30', '2026-01-31', '2026-02-27', '2026-02-28'])
  })

  test('15W is the weekday nearest to the 15th', () => {
    // The 15th of February and of March 2026 are Sundays, that of August is a Saturday.
    expect(days('0 0 15W * *', 3)).toEqual(['2026-01-15', '2026-02-16', '2026-03-16'])
    expect(days('0 0 15w 8 *', 1)).toEqual(['2026-08-14'])
    expect(days('0 0 1,15W 8 *', 2)).toEqual(['2026-08-01', '2026-08-14'])
  })

  test('W never leaves the month', () => {
    expect(days('0 0 1W 8 *', 1)).toEqual(['2026-08-03'])
    expect(days('0 0 31W 5 *', 1)).toEqual(['2026-05-29'])
    expect(days('0 0 31W * *', 3)).toEqual(['2026-01-30', '2026-03-31', '2026-05-29'])
  })

  test('LW is the last weekday', () => {
    expect(days('0 0 LW * *', 5)).toEqual(['2026-01-30', '2026-02-27', '2026-03-31', '2026-04-30', '2026-05-29'])
  })
})

describe('days of the week', () => {
  test('FRI#2 is the second Friday', () => {
    expect(days('0 0 * * FRI#2', 3)).toEqual(['2026-01-09', '2026-02-13', '2026-03-13'])
    expect(days('0 0 * * 7#1', 2)).toEqual(['2026-01-04', '2026-02-01'])
  })

  test('FRI#5 fires only in months that have five', () => {
    expect(days('0 0 * * FRI#5', 3)).toEqual(['2026-01-30', '2026-05-29', '2026-07-31'])
  })

  test('FRI#L and 5L are the last Friday', () => {
    const last = ['2026-01-30', '2026-02-27', '2026-03-27', '2026-04-24']
    for (const weekday of ['FRI#L', '5#L', '5L', 'FRIL', 'fri#l', 'fril'])
      expect(days(`0 0 * * ${weekday}`, 4)).toEqual(last)
    expect(days('0 0 * * 7L', 2)).toEqual(['2026-01-25', '2026-02-22'])
  })

  test('a list may mix these forms', () => {
    expect(days('0 0 * * MON#1,FRI#L,WED', 4)).toEqual(['2026-01-05', '2026-01-07', '2026-01-14', '2026-01-21'])
  })
})

describe('both day fields', () => {
  test('either matches when both are restricted', () => {
    expect(days('0 12 1 * MON', 4, '2025-09-01')).toEqual(['2025-09-01', '2025-09-08', '2025-09-15', '2025-09-22'])
    expect(days('0 12 1 * MON', 2, '2025-10-01')).toEqual(['2025-10-01', '2025-10-06'])
  })

  test('both must match with +', () => {
    expect(days('0 12 1 * +MON', 3)).toEqual(['2026-06-01', '2027-02-01', '2027-03-01'])
    expect(days('0 0 13 * +fri', 3)).toEqual(['2026-02-13', '2026-03-13', '2026-11-13'])
    expect(days('0 0 * * +MON', 2)).toEqual(['2026-01-05', '2026-01-12'])
    expect(days('0 0 L * +FRI#L', 1)).toEqual(['2026-07-31'])
  })

  test('with an unrestricted field only the other decides', () => {
    for (const any of ['*', '?', '*,1']) {
      expect(days(`0 0 ${any} * MON`, 2)).toEqual(['2026-01-05', '2026-01-12'])
      expect(days(`0 0 13 * ${any}`, 2)).toEqual(['2026-01-13', '2026-02-13'])
    }
    expect(days('0 0 ? * ?', 2)).toEqual(['2026-01-01', '2026-01-02'])
    expect(days('0 0 13 * +*', 2)).toEqual(['2026-01-13', '2026-02-13'])
  })

  test('1-31 and */2 are restrictions', () => {
    expect(days('0 12 1-31 * MON', 2)).toEqual(['2026-01-01', '2026-01-02'])
    expect(days('0 12 */2 * MON', 4, '2026-01-04')).toEqual(['2026-01-05', '2026-01-07', '2026-01-09', '2026-01-11'])
    expect(days('0 12 13 * 0-6', 2)).toEqual(['2026-01-01', '2026-01-02'])
  })
})

describe('a bad expression', () => {
  const field = (name: string) => (problem: string) => `${name}: ${problem}`
  const minute = field('field 1 (minute)')
  const monthDay = field('field 3 (day of month)')
  const weekday = field('field 5 (day of week)')
  const weekdays = '0–7, *, lists, ranges, steps, SUN–SAT, FRI#2, FRI#L, +MON'
  const zoned = (cron: string, name: string) =>
    `a cron expression holds no time zone: write cron: "${cron}", timezone: "${name}"`
  const fields = 'write 5 (minute hour day month weekday), 6 (second first) or 7 (year last)'

  it.each([
    // The number of fields.
    ['', 'EXPRESSION_SYNTAX', `cron expression "" has 0 fields: ${fields}`],
    ['9', 'EXPRESSION_SYNTAX', `cron expression "9" has 1 field: ${fields}`],
    ['* * * *', 'EXPRESSION_SYNTAX', `cron expression "* * * *" has 4 fields: ${fields}`],
    ['* * * * * * * *', 'EXPRESSION_SYNTAX', `cron expression "* * * * * * * *" has 8 fields: ${fields}`],
    // Out of range, in each field.
    ['0 25 * * *', 'EXPRESSION_OUT_OF_RANGE', 'field 2 (hour): 25 is out of range 0–23 (at character 3)'],
    ['60 * * * *', 'EXPRESSION_OUT_OF_RANGE', minute('60 is out of range 0–59 (at character 1)')],
    ['60 * * * * *', 'EXPRESSION_OUT_OF_RANGE', 'field 1 (second): 60 is out of range 0–59 (at character 1)'],
    ['0 0 0 * *', 'EXPRESSION_OUT_OF_RANGE', monthDay('0 is out of range 1–31 (at character 5)')],
    ['0 0 1,32 * *', 'EXPRESSION_OUT_OF_RANGE', monthDay('32 is out of range 1–31 (at character 7)')],
    ['0 0 * 13 *', 'EXPRESSION_OUT_OF_RANGE', 'field 4 (month): 13 is out of range 1–12 (at character 7)'],
    ['0 0 * * 1-8', 'EXPRESSION_OUT_OF_RANGE', weekday('8 is out of range 0–7 (at character 11)')],
    ['0 0 0 * * * 0', 'EXPRESSION_OUT_OF_RANGE', 'field 7 (year): 0 is out of range 1–9999 (at character 13)'],
    ['0 0 0 * * * 10000', 'EXPRESSION_OUT_OF_RANGE', 'field 7 (year): 10000 is out of range 1–9999 (at character 13)'],
    [
      '0 0 0 * * * 2030-2025',
      'EXPRESSION_OUT_OF_RANGE',
      'field 7 (year): 2030-2025 runs backwards: years do not wrap around (at character 13)',
    ],
    // Steps.
    ['*/0 * * * *', 'EXPRESSION_OUT_OF_RANGE', minute('step 0 is out of range 1–60 (at character 3)')],
    ['0 */25 * * *', 'EXPRESSION_OUT_OF_RANGE', 'field 2 (hour): step 25 is out of range 1–24 (at character 5)'],
    ['0 0 * * */8', 'EXPRESSION_OUT_OF_RANGE', weekday('step 8 is out of range 1–7 (at character 11)')],
    ['*/x * * * *', 'EXPRESSION_SYNTAX', minute('step "x" is not a number (at character 3)')],
    ['*/1/2 * * * *', 'EXPRESSION_SYNTAX', minute('step "1/2" is not a number (at character 3)')],
    [
      '0/15 * * * *',
      'EXPRESSION_SYNTAX',
      minute('"0/15": a step needs "*" or a range before it, such as "0-59/15" (at character 1)'),
    ],
    [
      '0 0 /30 * *',
      'EXPRESSION_SYNTAX',
      monthDay('"/30": a step needs "*" or a range before it, such as "1-31/30" (at character 5)'),
    ],
    // Invalid text.
    ['1, * * * *', 'EXPRESSION_SYNTAX', minute('an entry is missing beside a comma (at character 3)')],
    [
      'a * * * *',
      'EXPRESSION_SYNTAX',
      minute('"a" is not understood; allowed: 0–59, *, lists, ranges, steps (at character 1)'),
    ],
    [
      '0 0 * JAN-FOO *',
      'EXPRESSION_SYNTAX',
      'field 4 (month): "FOO" is not understood; allowed: 1–12, *, lists, ranges, steps, JAN–DEC (at character 11)',
    ],
    ['0 0 * * FO', 'EXPRESSION_SYNTAX', weekday(`"FO" is not understood; allowed: ${weekdays} (at character 9)`)],
    ['0 0 * * +', 'EXPRESSION_SYNTAX', weekday(`"" is not understood; allowed: ${weekdays} (at character 10)`)],
    ['TZ=Europe/Berlin 0 9 * * *', 'EXPRESSION_SYNTAX', zoned('0 9 * * *', 'Europe/Berlin')],
    ['CRON_TZ=UTC 0 9 * * *', 'EXPRESSION_SYNTAX', zoned('0 9 * * *', 'UTC')],
    ['0 9 * * * Europe/Berlin', 'EXPRESSION_SYNTAX', zoned('0 9 * * *', 'Europe/Berlin')],
    [
      '0 9 1 1 * 2027',
      'EXPRESSION_SYNTAX',
      'six fields begin with seconds, and a year is the seventh: write "0 0 9 1 1 * 2027"',
    ],
    [
      '0 0 29-l * *',
      'EXPRESSION_SYNTAX',
      'field 3 (day of month): "l" is not understood; a range ends in a number: 29-31 stops at the last day of each month (at character 8)',
    ],
    [
      '0 0 -1 * *',
      'EXPRESSION_SYNTAX',
      'field 3 (day of month): "-1" is not understood; days from the end are L (the last), L-1, L-2 and so on (at character 5)',
    ],
    [
      '0 0 * * Friday',
      'EXPRESSION_SYNTAX',
      weekday('"Friday" is not understood; names have three letters: write FRI (at character 9)'),
    ],
    // Unicode upper-cases "ſ" to "S".
    ['0 0 * * ſun', 'EXPRESSION_SYNTAX', weekday(`"ſun" is not understood; allowed: ${weekdays} (at character 9)`)],
    [
      '? 12 * * *',
      'EXPRESSION_SYNTAX',
      minute('"?" is not understood; allowed: 0–59, *, lists, ranges, steps (at character 1)'),
    ],
    [
      '0 12 +1 * MON',
      'EXPRESSION_SYNTAX',
      monthDay('"+1" is not understood; allowed: 1–31, *, lists, ranges, steps, L, L-3, LW, 15W (at character 6)'),
    ],
    // Modifiers.
    ['0 0 L-31 * *', 'EXPRESSION_OUT_OF_RANGE', monthDay('L-31: 31 is out of range 1–30 (at character 5)')],
    ['0 0 LX * *', 'EXPRESSION_SYNTAX', monthDay('"LX" is not understood; write L, L-3 or LW (at character 5)')],
    [
      '0 0 1-15W * *',
      'EXPRESSION_SYNTAX',
      monthDay('"1-15W": "W" stands after a single day, such as "15W" (at character 5)'),
    ],
    ['0 0 * * FRI#6', 'EXPRESSION_OUT_OF_RANGE', weekday('#6 is out of range #1–#5 (at character 13)')],
    ['0 0 * * FRI#x', 'EXPRESSION_SYNTAX', weekday('"#X" is not understood; write #1 to #5 or #L (at character 13)')],
    [
      '0 0 * * 1-5#2',
      'EXPRESSION_SYNTAX',
      weekday('"1-5#2": "#2" stands after a single day, such as "FRI#2" (at character 9)'),
    ],
    ['0 0 * * L', 'EXPRESSION_SYNTAX', weekday('"L": "L" stands after a single day, such as "FRIL" (at character 9)')],
    // Nicknames.
    ['@Daily', 'EXPRESSION_SYNTAX', 'nickname "@Daily" is unknown: write "@daily", @every or @at'],
    [
      '@fortnightly',
      'EXPRESSION_SYNTAX',
      'nickname "@fortnightly" is unknown: known are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every or @at',
    ],
    [
      '@reboot',
      'EXPRESSION_UNSUPPORTED',
      '"@reboot" names no instant and is not supported: run the work when your app starts, or enqueue it then',
    ],
    // Dates that exist in no year.
    [
      '0 0 30 2 *',
      'EXPRESSION_NEVER_FIRES',
      'cron expression "0 0 30 2 *" can never fire: no month that it allows has such a day',
    ],
    [
      '0 0 31 4,6,9,11 *',
      'EXPRESSION_NEVER_FIRES',
      'cron expression "0 0 31 4,6,9,11 *" can never fire: no month that it allows has such a day',
    ],
    [
      '0 0 0 29 2 * 2027',
      'EXPRESSION_NEVER_FIRES',
      'cron expression "0 0 0 29 2 * 2027" can never fire: no month that it allows has such a day',
    ],
    [
      '0 0 1-7 * +MON#2',
      'EXPRESSION_NEVER_FIRES',
      'cron expression "0 0 1-7 * +MON#2" can never fire: no month that it allows has such a day',
    ],
  ])('%j is refused', (cron, code, message) => {
    expect(() => timeline(cron)).toThrowError(expect.objectContaining({ name: 'BelfryError', code, message }))
  })

  it('of more than 256 characters is refused for its length alone', () => {
    const longest = `${'0,'.repeat(123)}59 * * * *`.padEnd(256)
    expect(timeline(longest).next(0)).toBe(59 * 60_000)
    expect(() => timeline(`${longest} `)).toThrowError(
      expect.objectContaining({
        code: 'EXPRESSION_TOO_LONG',
        message: 'cron expression is 257 characters long: at most 256 are allowed',
      }),
    )
  })

  it('does not match properties of an object by chance', () => {
    for (const cron of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      expect(() => timeline(cron)).toThrowError(expect.objectContaining({ code: 'EXPRESSION_SYNTAX' }))
    }
  })
})

test('29 February fires in leap years, and on a Monday once in 28', () => {
  expect(days('0 0 29 2 *', 3)).toEqual(['2028-02-29', '2032-02-29', '2036-02-29'])
  expect(days('0 0 29 2 +MON', 2)).toEqual(['2044-02-29', '2072-02-29'])
})
