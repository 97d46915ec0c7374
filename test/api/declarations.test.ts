import { describe, expect, it } from 'vitest'
import { createTestBelfry } from '../../src/testing/index.js'

describe('declared schedules that are wrong', () => {
  it('are refused at the start with the line that declared them', async () => {
    const { belfry } = createTestBelfry()
    belfry.job('mail', { run: () => null })
    belfry.schedule('daily', { cron: '0 25 * * *', job: 'mail' })
    const error = await belfry.start().catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ code: 'EXPRESSION_OUT_OF_RANGE' })
    expect(String((error as Error).stack).split('\n')[1]).toContain('declarations.test.ts:8')
  })

  it('are reported together', async () => {
    const { belfry, runs } = createTestBelfry()
    belfry.job('mail', { run: () => null })
    belfry.schedule('good', { cron: '* * * * *', job: 'mail' })
    belfry.schedule('one', { cron: '0 25 * * *', job: 'mail' })
    belfry.schedule('two', { every: '1ms', job: 'mail' })
    await expect(belfry.start()).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(/^2 declared schedules are wrong:\n- schedule "one": .*\n- schedule "two": /),
      cause: { errors: [{ code: 'EXPRESSION_OUT_OF_RANGE' }, { code: 'INTERVAL_TOO_SHORT' }] },
    })
    expect(await runs('mail')).toEqual([])
  })
})
