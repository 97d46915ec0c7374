// @ts-check
/** The minimum that a scheduler on Redis has to do: scripts over one connection, and a lock by SET NX. */
import { randomUUID } from 'node:crypto'
import { CLAIM, CLEAR, END, ENQUEUE, PUT, RAW_BATCH, RECORD, UNLOCK } from './raw-redis-scripts.js'
import { redisClient } from './redis.js'

/** A text as long as Belfry's, which holds a version, instants, the timeline and the missed policy. */
const SCHEDULE = `1700000000000 a1700000000000000 mb0k3wxl = = mb0k3wxl mb0m9gxl =\n${JSON.stringify({
  t: { every: 3_600_000 },
  to: 'job:noop',
  m: { policy: 'all', max: 10_000, graceMs: 10_000 },
})}\nnull`

/** @typedef {Awaited<ReturnType<typeof openRawRedis>>} RawRedis */

/** @param {number} [schedules] */
export async function openRawRedis(schedules = 0) {
  const client = await redisClient()
  const prefix = `raw${process.pid}.${randomUUID()}:`
  for (const { text } of [RECORD, ENQUEUE, CLAIM, END, UNLOCK, PUT]) await client.sendCommand(['SCRIPT', 'LOAD', text])
  /** @param {{ sha: string }} script @param {string} key @param {readonly string[]} args */
  const run = ({ sha }, key, args) => client.sendCommand(['EVALSHA', sha, '1', key, ...args])
  let now = 1_700_000_000_000
  let token = Date.now() * 1_000
  const nextToken = () => {
    token += 1
    return String(token)
  }

  /** @param {readonly string[]} ids @param {string} text */
  const put = (ids, text) =>
    run(
      PUT,
      prefix,
      ids.flatMap((id) => [id, text]),
    )
  for (let first = 0; first < schedules; first += RAW_BATCH) {
    const ids = Array.from({ length: Math.min(RAW_BATCH, schedules - first) }, (_, at) => `bench/${first + at}`)
    await put(ids, SCHEDULE)
  }

  return {
    put,

    async recordTicks() {
      const next = now + 3_600_000
      for (let taken = RAW_BATCH; taken === RAW_BATCH; ) {
        taken = Number(await run(RECORD, prefix, [String(now), String(next)]))
      }
      now = next
    },

    /** @param {number} count */
    async enqueueMany(count) {
      for (let made = 0; made < count; made += RAW_BATCH) {
        await run(ENQUEUE, prefix, [String(Date.now()), String(Math.min(RAW_BATCH, count - made))])
      }
    },

    enqueueOne: () => run(ENQUEUE, prefix, [String(Date.now()), '1']),

    async claim(own = nextToken()) {
      return /** @type {string[]} */ (/** @type {unknown} */ (await run(CLAIM, prefix, [String(Date.now()), own])))
    },

    /** Claims and ends a batch of runs, and returns its size. @param {'all' | 'none'} keep */
    async drain(keep) {
      const own = nextToken()
      const claimed = await this.claim(own)
      const numbers = claimed.filter((_, at) => at % 2 === 0)
      if (numbers.length > 0) await run(END, prefix, [String(Date.now()), own, keep, ...numbers])
      return numbers.length
    },

    /** @param {string} name */
    async lockAndUnlock(name) {
      const holder = randomUUID()
      await client.sendCommand(['SET', prefix + name, holder, 'NX', 'PX', '30000'])
      await run(UNLOCK, prefix + name, [holder])
    },

    async close() {
      await client.sendCommand(['EVAL', CLEAR, '0', `${prefix}*`])
      client.destroy()
    },
  }
}

/** @param {string} prefix */
export async function clearRedis(prefix) {
  const client = await redisClient()
  await client.sendCommand(['EVAL', CLEAR, '0', `${prefix}*`])
  client.destroy()
}
