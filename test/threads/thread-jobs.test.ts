import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Belfry, type BelfryOptions, createBelfry, type Logger, type Run } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

const DO = new URL('./handlers/do.js', import.meta.url)
const SOON = { timeout: 20_000, interval: 20 }
const instances: Belfry[] = []

afterEach(async () => {
  await Promise.all(instances.splice(0).map((instance) => instance.stop({ grace: 0 })))
})

interface Line {
  readonly level: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

function keptLog(lines: Line[]): Logger {
  const level = (name: string) => (fields: object, message: string) =>
    void lines.push({ level: name, fields: fields as Line['fields'], message })
  return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') }
}

interface Told {
  readonly do: string
  readonly [key: string]: unknown
}

async function endOf(belfry: Belfry, run: string): Promise<Run> {
  const ended = await belfry.runs.wait(run, { timeout: '25s' })
  if (ended === undefined) throw new Error(`run ${run} has left no trace`)
  return ended
}

/** An instance with a job whose handler runs in a thread and performs the action named in its payload. */
async function setup(options: Partial<BelfryOptions> = {}, job: { exclusive?: true; attempts?: number } = {}) {
  const lines: Line[] = []
  const belfry = createBelfry({ store: memory(), logger: keptLog(lines), ...options })
  instances.push(belfry)
  const doing = belfry.job<Told>('do', {
    run: DO,
    retry: { attempts: job.attempts ?? 1, delay: 1 },
    ...(job.exclusive === undefined ? {} : { exclusive: { by: ['key'], whenBusy: 'wait' } }),
  })
  await belfry.start()
  const enqueue = async (payload: Told) => ((await doing.enqueue(payload)) as { run: string }).run
  const done = async (payload: Told) => endOf(belfry, await enqueue(payload))
  return { belfry, lines, enqueue, done }
}

/** As `setup`, with a clock that the test advances. */
async function setupWithClock(options: { timeout?: string } = {}) {
  const lines: Line[] = []
  const test = createTestBelfry({ logger: keptLog(lines) })
  instances.push(test.belfry)
  const doing = test.belfry.job<Told>('do', {
    run: DO,
    retry: { attempts: 1 },
    exclusive: { by: ['key'], whenBusy: 'wait' },
    timeout: options.timeout ?? '1m',
  })
  await test.belfry.start()
  const enqueue = async (payload: Told) => ((await doing.enqueue(payload)) as { run: string }).run
  const state = async (run: string) => (await test.belfry.runs.get(run))?.state
  return { ...test, lines, enqueue, state }
}

describe('a job whose handler is a module', () => {
  it('runs in a thread, with the same context as any handler', async () => {
    const belfry = createBelfry({ store: memory() })
    instances.push(belfry)
    const payload = z.object({ do: z.string(), at: z.string().transform((text) => new Date(text)) })
    const job = belfry.job('tell', { payload, run: DO })
    await belfry.start()
    // @ts-expect-error: the schema determines the payload's type, wherever the handler runs.
    await expect(job.enqueue({ do: 'tell', at: 5 })).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    const { run } = (await job.enqueue({ do: 'tell', at: '2026-03-01' })) as { run: string }
    const ended = await endOf(belfry, run)
    expect(ended).toMatchObject({ state: 'succeeded' })
    expect(ended.result).toMatchObject({
      isMainThread: false,
      aborted: false,
      payload: { do: 'tell', at: '2026-03-01T00:00:00.000Z' },
      tick: new Date(ended.createdAt).toISOString(),
      token: ended.token,
      event: { id: run, payload: { do: 'tell', at: '2026-03-01' } },
      run: { id: run, origin: 'enqueue', attempt: 1 },
    })
  })

  it('leaves the main thread free while it computes', async () => {
    const belfry = createBelfry({ store: memory() })
    instances.push(belfry)
    const told = new SharedArrayBuffer(4)
    const payload = z.object({ do: z.string() }).transform((given) => ({ ...given, told }))
    const job = belfry.job('spin', { payload, run: DO })
    await belfry.start()
    const { run } = (await job.enqueue({ do: 'spin until told' })) as { run: string }
    await expect.poll(async () => (await belfry.runs.get(run))?.state, SOON).toBe('running')
    // A handler on the main thread would never let this timer fire.
    await delay(50)
    Atomics.store(new Int32Array(told), 0, 1)
    expect(await endOf(belfry, run)).toMatchObject({ state: 'succeeded', result: 'told' })
  })

  it('is not blamed when another handler blocks the main thread', async () => {
    const lines: Line[] = []
    const belfry = createBelfry({ store: memory(), logger: keptLog(lines) })
    instances.push(belfry)
    const inThread = belfry.job<Told>('in a thread', { run: DO })
    const blocking = belfry.job('blocking', {
      run: async () => {
        for (const until = performance.now() + 1_500; performance.now() < until; );
        await delay(500)
      },
    })
    await belfry.start()
    const { run } = (await inThread.enqueue({ do: 'wait', ms: 3_000 })) as { run: string }
    await expect.poll(async () => (await belfry.runs.get(run))?.state, SOON).toBe('running')
    const blocked = (await blocking.enqueue()) as { run: string }
    const warnings = () => lines.flatMap(({ fields }) => ('blockedMs' in fields ? fields.running : []))
    await expect.poll(warnings, SOON).toEqual([`blocking ${blocked.run}`])
  })

  it('may be compiled CommonJS', async () => {
    const belfry = createBelfry({ store: memory() })
    instances.push(belfry)
    const job = belfry.job('compiled', { run: new URL('./handlers/compiled.cjs', import.meta.url) })
    await belfry.start()
    const { run } = (await job.enqueue()) as { run: string }
    expect(await endOf(belfry, run)).toMatchObject({ result: 'from CommonJS' })
  })

  it('has no transaction, and its error says so', async () => {
    const { done } = await setup()
    const { error } = await done({ do: 'transaction' })
    expect(error).toMatchObject({ code: 'UNSUPPORTED', message: expect.stringContaining('transaction() works in') })
  })

  it('writes to its instance’s log, with the fields of its run', async () => {
    const { lines, done } = await setup()
    const { id } = await done({ do: 'log' })
    expect(lines.filter(({ fields }) => fields.run === id)).toEqual([
      { level: 'info', message: 'resized', fields: { run: id, attempt: 1, size: 3 } },
      { level: 'warn', message: 'resized oddly', fields: expect.objectContaining({ run: id, attempt: 1 }) },
      { level: 'error', message: 'lost', fields: { run: id, attempt: 1, part: 'exif', kept: false } },
    ])
    const odd = lines.find(({ message }) => message === 'resized oddly')?.fields.err
    expect(odd).toBeInstanceOf(Error)
    expect(odd).toMatchObject({ message: 'odd', code: 'E_ODD' })
  })
})

describe('an error thrown by a handler in a thread', () => {
  it('keeps its message, code and stack', async () => {
    const { done } = await setup()
    const { state, error } = await done({ do: 'throw' })
    expect(state).toBe('failed')
    expect(error).toMatchObject({ message: 'cannot resize', code: 'E_RESIZE' })
    expect(error?.stack).toContain('handlers/do.js')
    expect((await done({ do: 'throw text' })).error?.message).toBe('only text')
  })

  it('is passed to the backoff function', async () => {
    const belfry = createBelfry({ store: memory() })
    instances.push(belfry)
    const seen: unknown[] = []
    const backoff = (_: number, error: unknown) => {
      seen.push(error)
      return 1
    }
    const job = belfry.job<Told>('do', { run: DO, retry: { attempts: 2, backoff } })
    await belfry.start()
    const { run } = (await job.enqueue({ do: 'throw' })) as { run: string }
    expect(await endOf(belfry, run)).toMatchObject({ state: 'failed', attempt: 2 })
    const [error] = seen as [Error]
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({
      name: 'TypeError',
      code: 'E_RESIZE',
      status: 507,
      cause: { message: 'the disk is full' },
    })
  })

  it('ends the run at once when it is not retryable', async () => {
    const { done } = await setup({}, { attempts: 5 })
    expect(await done({ do: 'throw for good' })).toMatchObject({ state: 'failed', attempt: 1 })
    const { error, attempt } = await done({ do: 'return what is no JSON' })
    expect({ error, attempt }).toMatchObject({ attempt: 1, error: { code: 'PAYLOAD_INVALID' } })
    expect(error?.message).toContain('the result of job "do".when')
  })

  it('names the job when the payload cannot be sent to the thread', async () => {
    const belfry = createBelfry({ store: memory() })
    instances.push(belfry)
    const payload = z.object({ do: z.string() }).transform((given) => ({ ...given, undo: () => {} }))
    const job = belfry.job('functions', { payload, run: DO })
    await belfry.start()
    const { run } = (await job.enqueue({ do: 'tell' })) as { run: string }
    const { error, attempt } = await endOf(belfry, run)
    expect({ error, attempt }).toMatchObject({ attempt: 1, error: { code: 'PAYLOAD_INVALID' } })
    expect(error?.message).toMatch(/^payload of job "functions": .* cannot be sent to a thread/)
  })
})

describe('a thread that dies', () => {
  it.each([
    ['exit', /exit code 3: something in it calls process\.exit/],
    ['throw later', /an error that nothing caught: nobody catches this/],
  ])('fails the attempt, not the process: %s', async (what, message) => {
    const { done } = await setup({}, { attempts: 2 })
    expect(await done({ do: what })).toMatchObject({
      state: 'failed',
      attempt: 2,
      error: { code: 'THREAD_ENDED', message: expect.stringMatching(message) },
    })
    expect(await done({ do: 'tell' })).toMatchObject({ state: 'succeeded' })
  })

  it('fails the attempt that exceeds its memory limit', async () => {
    const { done } = await setup({ threads: { memoryMb: 32 } })
    const { error } = await done({ do: 'use much memory' })
    expect(error).toMatchObject({ code: 'THREAD_ENDED', message: expect.stringContaining('ran out of memory') })
    expect(await done({ do: 'tell' })).toMatchObject({ state: 'succeeded' })
  })

  it('harms no later run when leftover work of a handler kills it', async () => {
    const { done, lines } = await setup({ threads: { max: 1 } })
    for (let round = 0; round < 10; round += 1) {
      expect(await done({ do: 'leave a bomb' })).toMatchObject({ state: 'succeeded' })
      expect(await done({ do: 'tell' })).toMatchObject({ state: 'succeeded' })
    }
    const left = () => lines.filter(({ message }) => message.includes('a handler leaves work behind'))
    await expect.poll(left, SOON).not.toEqual([])
    expect(left()[0]?.fields.err).toMatchObject({ message: 'left behind' })
  })
})

describe('an attempt that must end', () => {
  it('ends after its timeout and its abort window, whatever its handler does', async () => {
    const { enqueue, state, advance, belfry, lines } = await setupWithClock({ timeout: '1m' })
    const run = await enqueue({ do: 'spin for ever', key: 'a' })
    const next = await enqueue({ do: 'tell', key: 'a' })
    await expect.poll(() => state(run), SOON).toBe('running')
    await advance('1m')
    expect(await state(run)).toBe('running')
    await advance('5s')
    await expect.poll(() => state(run), SOON).toBe('failed')
    expect(await belfry.runs.get(run)).toMatchObject({ error: { code: 'TIMEOUT' } })
    // Its key and its thread are free: the next run starts.
    await expect.poll(() => state(next), SOON).toBe('succeeded')
    expect(lines.map(({ message }) => message)).toContain(
      'a handler did not return after it was aborted: its thread was ended; let it watch its signal',
    )
  })

  it('ends soon after it was cancelled', async () => {
    const { enqueue, state, advance, belfry } = await setupWithClock()
    const run = await enqueue({ do: 'spin for ever', key: 'a' })
    await expect.poll(() => state(run), SOON).toBe('running')
    await belfry.runs.cancel(run)
    await advance('5s')
    await expect.poll(() => state(run), SOON).toBe('cancelled')
  })

  it('can end itself inside a loop that never yields', async () => {
    const { enqueue, state, advance, belfry, lines } = await setupWithClock({ timeout: '1m' })
    const before = await enqueue({ do: 'tell', key: 'a' })
    await expect.poll(() => state(before), SOON).toBe('succeeded')
    for (const what of ['spin until aborted', 'wait until aborted']) {
      const run = await enqueue({ do: what, key: 'a' })
      await expect.poll(() => state(run), SOON).toBe('running')
      await belfry.runs.cancel(run)
      await expect.poll(() => state(run), SOON).not.toBe('running')
    }
    const after = await enqueue({ do: 'tell', key: 'a' })
    await expect.poll(() => state(after), SOON).toBe('succeeded')
    await advance('10s')
    const threads = await Promise.all([before, after].map(async (run) => (await belfry.runs.get(run))?.result))
    const [first, last] = threads as { thread: number }[]
    expect(first?.thread).toBe(last?.thread)
    expect(lines).toEqual([])
  })
})

describe('stop()', () => {
  it('gives a handler in a thread its grace', async () => {
    const { belfry, enqueue } = await setup()
    const run = await enqueue({ do: 'wait', ms: 300 })
    await expect.poll(async () => (await belfry.runs.get(run))?.state, SOON).toBe('running')
    const ended = new Promise<unknown>((resolve) => belfry.on('run:succeeded', ({ result }) => resolve(result)))
    await belfry.stop({ grace: '20s' })
    expect(await ended).toBe('waited')
  })

  it('ends handlers that do not return within the grace, and releases their runs', async () => {
    const { belfry, enqueue } = await setup()
    const run = await enqueue({ do: 'spin for ever' })
    await expect.poll(async () => (await belfry.runs.get(run))?.state, SOON).toBe('running')
    const released = new Promise<Run>((resolve) => belfry.on('run:released', (event) => resolve(event.run)))
    await belfry.stop({ grace: '50ms' })
    expect((await released).id).toBe(run)
  })
})
