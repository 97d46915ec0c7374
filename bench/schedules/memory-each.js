// @ts-check
/** Redis memory per schedule, including its indexes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseSchedule } from '../../dist/api/schedules/schedule-input.js'
import { openRawRedis } from '../harness/raw-redis.js'
import { redisMemory } from '../harness/redis.js'
import { hundredths, report } from '../harness/report.js'
import { openStore } from '../harness/stores.js'

const BATCH = 1_000
/** 60 bytes as JSON. */
const PAYLOAD = { user: '0123456789abcdef0123456789abcdef', region: 'eu-12' }

/** @param {number} at 24 characters. */
const idOf = (at) => `tenant/reminder/${String(at).padStart(8, '0')}`

/**
 * @param {string} name
 * @param {number} n
 * @param {(title: string) => boolean} wants
 */
export async function memoryEach(name, n, wants) {
  const title = `memory of ${n} schedules`
  if (!wants(title)) return
  const input = { every: '1h', job: 'remind', payload: PAYLOAD }
  const start = await settledMemory()
  const bench = await openStore(name)
  await inBatches(n, (ids) =>
    bench.store.schedules.put(ids.map((id) => ({ id, definition: parseSchedule(id, input, 10_000) }))),
  )
  const ours = ((await redisMemory()) - start) / n
  await bench.close()
  const before = await settledMemory()
  const raw = await openRawRedis()
  const text = `1700000000000 {"every":"1h","job":"remind"}\n${JSON.stringify(PAYLOAD)}`
  await inBatches(n, (ids) => raw.put(ids, text))
  const least = ((await redisMemory()) - before) / n
  await raw.close()
  report({
    ...{ bench: 'schedules', case: title, store: name, idLength: idOf(0).length },
    payloadBytes: JSON.stringify(PAYLOAD).length,
    bytesEach: Math.round(ours),
    reference: 'the due instant, the input and the payload as one text, with the same indexes',
    referenceBytesEach: Math.round(least),
    ratio: hundredths(ours / least),
  })
}

/** Waits until the used memory is stable, because Redis frees removed keys in the background. */
async function settledMemory() {
  for (let used = await redisMemory(); ; ) {
    await sleep(500)
    const now = await redisMemory()
    if (Math.abs(now - used) < 100_000) return now
    used = now
  }
}

/**
 * @param {number} n
 * @param {(ids: string[]) => Promise<unknown>} put
 */
async function inBatches(n, put) {
  for (let at = 0; at < n; at += BATCH) {
    await put(Array.from({ length: Math.min(BATCH, n - at) }, (_, index) => idOf(at + index)))
  }
}
