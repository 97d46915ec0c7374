// @ts-check
/** The minimum that Redis has to write for a schedule: a text as long as Belfry's, an index entry, and a due entry. */
import { definitionText } from '../../dist/stores/redis/schedules/schedule-codec.js'
import { openRawRedis } from './raw-redis.js'
import { RAW_BATCH } from './raw-redis-scripts.js'

const FIRST_LINE =
  'allow 1763522623000001 {"createdAt":1763522623000,"cursor":1763522623000,"nextAt":1763526223000,"dueAt":1763526223000}'

/** @param {import('../../dist/core/schedules/schedule.js').ScheduleDefinition} definition */
export async function openRawRedisSchedules(definition) {
  const raw = await openRawRedis()
  const text = `${FIRST_LINE}\n${definitionText(definition)}`
  return {
    /** @param {number} count */
    async putMany(count) {
      for (let made = 0; made < count; made += RAW_BATCH) {
        const ids = Array.from({ length: Math.min(RAW_BATCH, count - made) }, (_, at) => `raw/${made + at}`)
        await raw.put(ids, text)
      }
    },
    /** @param {string} id */
    put: (id) => raw.put([id], text),
    close: raw.close,
  }
}
