// @ts-check
/** Makes a backlog of due ticks, from which a throughput bench starts. */
import { parseSchedule } from '../../dist/api/schedules/schedule-input.js'

const GRACE_MS = 10_000

/**
 * Puts `schedules` schedules that tick every second (or as `every` says) and moves the clock forward, so that
 * `schedules × each` ticks are due.
 * @param {import('./stores.js').BenchStore} bench
 * @param {{ schedules: number, each: number, job?: string, to?: string, keep: 'all' | 'none', prefix?: string, every?: string }} size
 */
export async function makeBacklog({ store, skip }, { schedules, each, job, to, keep, prefix = 'bench', every = '1s' }) {
  const writes = Array.from({ length: schedules }, (_, at) => {
    const id = `${prefix}/${at}`
    const target = to === undefined ? { job: job ?? 'noop' } : { to }
    const input = { every, ...target, keep, missed: { policy: /** @type {const} */ ('all'), max: 10_000 } }
    return { id, definition: parseSchedule(id, input, GRACE_MS) }
  })
  for (let at = 0; at < writes.length; at += 1_000) await store.schedules.put(writes.slice(at, at + 1_000))
  await skip(each * 1_000 + 50)
}
