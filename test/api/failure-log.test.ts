import { afterEach, describe, expect, it, vi } from 'vitest'
import { stderrLogger } from '../../src/core/logger.js'
import { createTestBelfry } from '../../src/testing/index.js'

type Line = { readonly level: string; readonly fields: Record<string, unknown>; readonly message: string }

/** A job whose attempts all fail, and the lines that its instance logs. */
async function failing({ count = 1, attempts = 2 } = {}) {
  const lines: Line[] = []
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields: fields as Line['fields'], message })
  const logger = { debug() {}, info: at('info'), warn: at('warn'), error: at('error') }
  const { belfry, advance } = createTestBelfry({ logger, concurrency: 100 })
  const job = belfry.job('send', {
    retry: { attempts, delay: '1s' },
    run: () => {
      throw new Error('no paper')
    },
  })
  await belfry.start()
  await job.enqueueMany(Array.from({ length: count }, () => ({ payload: null })))
  await advance('9s')
  const ofLevel = (level: string) => lines.filter((line) => line.level === level && 'job' in line.fields)
  return { belfry, advance, lines, errors: ofLevel('error'), infos: ofLevel('info') }
}

describe('the log of failures', () => {
  afterEach(() => vi.restoreAllMocks())

  it('has an error with run, job, attempt and stack when a run fails for good', async () => {
    const { errors } = await failing()
    expect(errors).toEqual([
      {
        level: 'error',
        message: expect.stringMatching(/^run \S+ of job "send" has failed for good at attempt 2: no paper$/),
        fields: {
          run: expect.any(String),
          job: 'send',
          attempt: 2,
          err: { message: 'no paper', stack: expect.stringContaining('failure-log.test.ts') },
        },
      },
    ])
  })

  it('has an info line with the delay when an attempt is tried again', async () => {
    const { infos } = await failing()
    expect(infos).toHaveLength(1)
    expect(infos[0]?.message).toMatch(
      /^attempt 1 of run \S+ of job "send" has failed and is tried again in \d+ ms: no paper$/,
    )
    expect(infos[0]?.fields).toMatchObject({ job: 'send', attempt: 1, delayMs: expect.any(Number) })
  })

  it('has five lines in ten seconds for each job, and then says how many more there were', async () => {
    const { advance, errors, lines } = await failing({ count: 40, attempts: 1 })
    expect(errors).toHaveLength(5)
    await advance('11s')
    expect(lines.filter(({ level }) => level === 'error').at(-1)).toMatchObject({
      fields: { target: 'job "send"', more: 35 },
      message: expect.stringContaining('35 more runs of job "send" have failed for good'),
    })
  })

  it('says at the stop how many lines were left out', async () => {
    const { belfry, lines } = await failing({ count: 7, attempts: 1 })
    await belfry.stop()
    expect(lines.filter(({ level }) => level === 'error').at(-1)?.fields).toMatchObject({ more: 2 })
  })

  it('goes to standard error by default, with the stack below the line', () => {
    const written: string[] = []
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0)
    stderrLogger.error(
      { run: '1', err: { message: 'no', stack: 'Error: no\n    at work (job.ts:1:1)' } },
      'a run failed',
    )
    expect(written).toEqual([
      'belfry error: a run failed {"run":"1","err":{"message":"no"}}\n    at work (job.ts:1:1)\n',
    ])
  })
})

describe('events of runs', () => {
  it('carry the state after the event', async () => {
    const { belfry, advance } = createTestBelfry()
    const states: string[] = []
    belfry.on('run:started', ({ run }) => states.push(`started ${run.state}`))
    belfry.on('run:retrying', ({ run }) => states.push(`retrying ${run.state}`))
    belfry.on('run:failed', ({ run }) => states.push(`failed ${run.state}`))
    belfry.on('run:succeeded', ({ run }) => states.push(`succeeded ${run.state}`))
    const bad = belfry.job('bad', { retry: { attempts: 2 }, run: () => Promise.reject(new Error('no')) })
    const good = belfry.job('good', { run: () => {} })
    await belfry.start()
    await good.enqueue(null)
    await advance('1s')
    await bad.enqueue(null)
    await advance('1m')
    const once = ['started running', 'succeeded succeeded', 'started running', 'retrying ready']
    expect(states).toEqual([...once, 'started running', 'failed failed'])
  })
})
