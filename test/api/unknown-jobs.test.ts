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

describe('a path of exclusive.by that the payload does not have', () => {
  it('is a warning once, with the nearest name', async () => {
    const { belfry, warnings } = kit()
    const job = belfry.job('digest', { exclusive: { by: ['regoin', 'user.id'] }, run: () => null })
    await belfry.start()
    for (const region of ['eu', 'us']) await job.enqueue({ region, user: { id: 1 } })
    expect(warnings).toEqual([
      'the payload of job "digest" has no "regoin" (did you mean "region"?): that part of its exclusive key is null, so all runs without it share one key',
    ])
  })

  it('is no warning once a payload has had it', async () => {
    const { belfry, warnings } = kit()
    const job = belfry.job('digest', { exclusive: { by: ['user.id'] }, run: () => null })
    await belfry.start()
    await job.enqueue({ user: { id: 1 } })
    await job.enqueue({})
    expect(warnings).toEqual([])
  })
})
