/**
 * Checks a publishing process that is killed in the middle of a batch: another takes over, every message arrives, and
 * repeats have the same id and content.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import type { ReceivedMessage } from '../../src/testing/sink-contract.js'

export interface Published {
  /** The name of the built sink module, and of its factory. */
  readonly sink: string
  readonly make: string
  readonly options: object
  arrived(): Promise<readonly ReceivedMessage[]>
}

const SCHEDULES = 300
const BATCH = 25
/** The number of batches sent before the kill, so that some runs are settled, some acknowledged, and some in flight. */
const BATCHES = 5
const PUBLISHER = fileURLToPath(new URL('publisher.js', import.meta.url))

export async function killPublisher({ sink, make, options, arrived }: Published): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-publisher-'))
  const file = join(folder, 'belfry.db')
  const belfry = createBelfry({ store: sqlite({ path: file }), roles: [] })
  const job = JSON.stringify({ file, sink, make, options: { ...options, batch: BATCH } })
  const start = () => spawn(process.execPath, [PUBLISHER, job], { stdio: ['ignore', 'pipe', 'inherit'] })
  // This instant has just passed, and the schedules fire at once: `at` allows instants within the grace.
  const at = Math.floor(Date.now() / 1_000) * 1_000
  const names = Array.from({ length: SCHEDULES }, (_, index) => `order/${index}`)
  const expected = names.map((name) => `${name}-${at / 1_000}`).sort()
  const first = start()
  let second: ReturnType<typeof start> | undefined
  try {
    await belfry.schedules.putMany(
      names.map((id) => [id, { at: new Date(at), to: 'out', payload: { id }, onFinish: 'keep' }]),
    )
    await linesOf(first, BATCHES)
    await kill(first)
    second = start()
    const all = async () => (await belfry.runs.list({ limit: 1_000 })).items
    const settled = async () => (await all()).filter(({ state }) => state === 'succeeded').length
    await expect.poll(settled, { timeout: 50_000, interval: 100 }).toBe(SCHEDULES)
    const messages = await arrived()
    expect([...new Set(messages.map(({ id }) => id))].sort()).toEqual(expected)
    for (const { id, generated_at, schedule_id, payload } of messages) {
      expect({ id, generated_at, payload }).toEqual({
        id: `${schedule_id}-${at / 1_000}`,
        generated_at: new Date(at).toISOString(),
        payload: { id: schedule_id },
      })
    }
    // Some runs were taken over; otherwise the kill came too early or too late to prove anything.
    expect((await all()).filter(({ attempt }) => attempt > 1).length).toBeGreaterThan(0)
  } finally {
    await Promise.all([first, second].map((process_) => process_ && kill(process_)))
    await belfry.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function linesOf(process_: ReturnType<typeof spawn>, count: number): Promise<void> {
  if (process_.stdout === null) throw new Error('the publisher has no stdout')
  let seen = 0
  for await (const _ of createInterface(process_.stdout)) {
    seen += 1
    if (seen === count) return
  }
  throw new Error(`the publisher ended after ${seen} batches`)
}

async function kill(process_: ReturnType<typeof spawn>): Promise<void> {
  if (process_.exitCode !== null || process_.signalCode !== null) return
  const gone = once(process_, 'exit')
  process_.kill('SIGKILL')
  await gone
}
