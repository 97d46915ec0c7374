import { describe, expect, it } from 'vitest'
import { createTestBelfry } from '../../src/testing/index.js'

function kit() {
  const warnings: string[] = []
  const logger = {
    debug() {},
    info() {},
    warn: (_: object, message: string) => void warnings.push(message),
    error() {},
  }
  const { belfry } = createTestBelfry({ logger })
  belfry.job('mail', { run: () => null })
  return { belfry, warnings }
}

describe('a job that no instance has defined', () => {
  const warning = 'no instance has defined job "mial", so its runs wait until one does: did you mean "mail"?'

  it('is a warning at the start when a declared schedule names it', async () => {
    const { belfry, warnings } = kit()
    belfry.schedule('daily', { cron: '@daily', job: 'mial' })
    await belfry.start()
    expect(warnings).toEqual([warning])
  })

  it('is a warning once when its first run or schedule is made', async () => {
    const { belfry, warnings } = kit()
    await belfry.start()
    await belfry.enqueue('mial', null)
    await belfry.schedules.put('daily', { cron: '@daily', job: 'mial' })
    expect(warnings).toEqual([warning])
  })

  it('is refused when it is a bare function', async () => {
    const { belfry } = kit()
    // @ts-expect-error A function has a name, but is no job.
    await expect(belfry.schedules.put('daily', { cron: '@daily', job: () => null })).rejects.toThrow(
      "job is a function; define it first, const job = belfry.job('name', { run }), and give that job",
    )
  })
})
