import { describe, expect, it } from 'vitest'
import { parseCrontab } from './parse-crontab.js'

const USER = { system: false, timezone: 'UTC' }
const parse = (text: string, options = USER) => parseCrontab(text, options).lines

describe('a crontab', () => {
  it('has comments, settings that count for the lines after them, and lines', () => {
    const [first, second, third] = parse(`# nightly
A=1
0 9 * * 1-5   /bin/first  --now
  B = "two words"
A='x'
@daily second
CRON_TZ=Europe/Berlin
*/5\t* * * *\tthird`)
    expect(first).toMatchObject({
      number: 3,
      cron: '0 9 * * 1-5',
      command: '/bin/first  --now',
      timezone: 'UTC',
      env: { A: '1' },
    })
    expect(second).toMatchObject({ cron: '@daily', command: 'second', env: { A: 'x', B: 'two words' } })
    expect(third).toMatchObject({ cron: '*/5 * * * *', timezone: 'Europe/Berlin', env: { A: 'x', B: 'two words' } })
  })

  it('of the system names a user before the command', () => {
    const [line] = parse('17 * * * *  www-data  cd / && run-parts', { system: true, timezone: 'UTC' })
    expect(line).toMatchObject({ user: 'www-data', command: 'cd / && run-parts' })
    expect(() => parse('17 * * * * onlyoneword', { system: true, timezone: 'UTC' })).toThrow(
      'line 1 of the crontab: in a system crontab a user stands before the command',
    )
  })

  it('passes the text after the first % as input to the command, and reads \\% as %', () => {
    expect(parse('* * * * * mail -s "50\\% off" ana%Dear Ana,%%bye')[0]).toMatchObject({
      command: 'mail -s "50% off" ana',
      stdin: 'Dear Ana,\n\nbye\n',
    })
  })

  it('joins the day fields with AND when one of them begins with *, as cron does', () => {
    const crons = (text: string) => parse(text).map(({ cron }) => cron)
    expect(crons('0 4 */2 * MON a\n0 4 13 * */2 a\n0 4 */2 * */3 a')).toEqual([
      '0 4 */2 * +MON',
      '0 4 13 * +*/2',
      '0 4 */2 * +*/3',
    ])
    const same = ['0 4 13 * MON', '0 4 */2 * *', '0 4 * * MON', '0 4 1-31/2 * MON', '@daily']
    expect(crons(same.map((each) => `${each} a`).join('\n'))).toEqual(same)
  })

  it('identifies lines by their content, not by their position', () => {
    const hashes = (text: string) => parse(text).map(({ hash }) => hash)
    const [a, b] = hashes('* * * * * a\n* * * * * b')
    expect(hashes('# moved\n* * * * * b\n\n* * * * * a')).toEqual([b, a])
    expect(hashes('X=1\n* * * * * a')).not.toEqual([a])
    expect(hashes('CRON_TZ=Asia/Tokyo\n* * * * * a')).not.toEqual([a])
    expect(hashes('MAILTO=ana\n* * * * * a')).toEqual([a])
    // The same line twice counts as two lines, as for cron.
    expect(new Set(hashes('* * * * * a\n* * * * * a')).size).toBe(2)
  })

  it('reports which line is invalid, and names what is unsupported', () => {
    expect(() => parse('\n\nnonsense')).toThrow('line 3 of the crontab: it has no time and command')
    expect(() => parse('61 * * * * a')).toThrow('line 1 of the crontab: field 1 (minute): 61 is out of range')
    const { lines, notes } = parseCrontab('MAILTO=ana\n@reboot a\n@hourly b\n-5 * * * * c\n0 0 31 2 * d', USER)
    expect(lines.map(({ cron, command }) => [cron, command])).toEqual([
      ['@hourly', 'b'],
      ['5 * * * *', 'c'],
    ])
    expect(notes).toEqual([
      'line 2: @reboot has no time, so it is left out',
      'line 5: there is no such day, so it is left out',
      'MAILTO: nothing is mailed; belfry run ID shows the output of a command',
    ])
  })
})
