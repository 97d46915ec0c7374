// @ts-check
/** The schedule that every contender creates. */
export const INPUT = {
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
  job: 'noop',
  payload: { user: 1234, region: 'eu' },
}
