/** A request decides how far a search or a count reaches, so each must be cheap over all years of the calendar. */
import { describe, expect, it } from 'vitest'
import { timeline } from './timeline.js'

const [FIRST, LAST] = [Date.parse('0001-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59Z')]
const ZONES = ['UTC', 'Europe/Berlin', 'Africa/Casablanca']
const EXPRESSIONS = ['* * * * * *', '0 2 29 2 1', '30 2 * * SUN#L', '0 30 2 * * * 2027-9999/3', '0 0 1 1 * *']

/** CPU time, which other programs on the machine do not change. */
function cpuMs(work: () => void): number {
  const start = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1_000
}

describe.each(ZONES)('in %s', (timezone) => {
  // The first use of a zone reads its years from Intl.
  timeline({ cron: '0 0 * * 1', timezone }).count(FIRST, LAST)

  it.each(EXPRESSIONS)('%s is counted over all years in little time', (cron) => {
    const line = timeline({ cron, timezone })
    expect(cpuMs(() => line.count(FIRST, LAST))).toBeLessThan(300)
  })

  it.each(EXPRESSIONS)('%s is searched from both ends in little time', (cron) => {
    const line = timeline({ cron, timezone })
    const searches = () => [line.next(FIRST), line.previous(LAST), line.next(LAST), line.previous(FIRST)]
    expect(cpuMs(searches)).toBeLessThan(50)
  })
})
