import type { MissedOptions, ScheduleFields } from '../../src/api/schedules/schedule-input.js'
import type { Missed, Overlap } from '../../src/core/policies.js'
import type { Keep } from '../../src/core/runs/run.js'
import type { Random } from '../../src/testing/random.js'
import { isSlow, type JobSettings, type Payload, type Settings } from './settings.js'

const OFTEN = ['* * * * * *', '*/2 * * * * *', '1-59/7 * * * * *', '3,4,5,40 * * * * *'] as const
const SELDOM = ['*/10 * * * * *', '*/15 * * * * *', '5,35 * * * * *', '0 * * * * *', '* * * * *'] as const

/** A random schedule. With `ahead`, instants of `at` are in the future. */
export function randomSchedule(random: Random, { jobs }: Settings, now: number, ahead: boolean): ScheduleFields {
  const job = random.pick(jobs)
  return {
    ...randomTimeline(random, job, now, ahead),
    job: job.name,
    payload: randomPayload(random),
    overlap: random.pick<Overlap>(['allow', 'allow', 'skip', 'queue-one', 'queue-all', 'cancel-running']),
    missed: randomMissed(random),
    ...(random.chance(0.2) ? { deadline: random.integer(500, 10_000) } : {}),
    ...(random.chance(0.25) ? { jitter: random.integer(1, 5_000) } : {}),
    ...(random.chance(0.15) ? { times: random.integer(1, 20) } : {}),
    ...(random.chance(0.2) ? { priority: random.integer(-1, 2) } : {}),
    ...(random.chance(0.4) ? { keep: random.pick<Keep>(['all', 'failures', 'none']) } : {}),
    ...(random.chance(0.5) ? { onFinish: 'keep' as const } : {}),
  }
}

export function randomPayload(random: Random): Payload {
  return { k: random.pick(['a', 'b', 'c']), n: random.integer(0, 2) }
}

type TimelineInput = Pick<ScheduleFields, 'cron' | 'every' | 'at' | 'timezone' | 'startsAt' | 'endsAt'>

export function randomTimeline(random: Random, job: JobSettings, now: number, ahead: boolean): TimelineInput {
  const kind = random.next()
  if (kind < 0.15) return { at: randomInstants(random, now, ahead) }
  if (kind < 0.55) {
    const cron = isSlow(job) ? random.pick(SELDOM) : random.pick([...OFTEN, ...SELDOM])
    return random.chance(0.3) ? { cron, timezone: 'Europe/Berlin' } : { cron }
  }
  const every = isSlow(job) ? random.pick([10_000, 25_000, 60_000]) : random.pick([1_000, 1_500, 3_000, 7_000, 20_000])
  if (kind < 0.9) return { every }
  // With `ahead`, no tick is in a past second, where a removed schedule of the same name may have used its event id.
  const startsAt = wholeSecond(now) + Math.max(random.integer(-5, 20), ahead ? 0 : -5) * 1_000
  const endsAt = Math.max(startsAt, now) + every * 2 + random.integer(0, 60_000)
  return { every: wholeSecond(every), startsAt: new Date(startsAt), endsAt: new Date(endsAt) }
}

function randomInstants(random: Random, now: number, ahead: boolean): Date[] {
  const seconds = new Set([random.integer(3, 60)])
  for (let more = random.integer(0, 5); more > 0; more -= 1) seconds.add(random.integer(ahead ? 1 : -4, 90))
  return [...seconds].map((second) => new Date(wholeSecond(now) + second * 1_000))
}

/**
 * Event ids have a resolution of one second. A timeline that names its first instant could have a tick in the same
 * second as the last tick of the timeline that it replaces, and share its event id. A timeline that begins when it is
 * put, or on whole seconds, cannot.
 */
function wholeSecond(ms: number): number {
  return Math.ceil(ms / 1_000) * 1_000
}

function randomMissed(random: Random): MissedOptions {
  const policy = random.pick<Missed['policy']>(['skip', 'latest', 'all'])
  const within = policy !== 'skip' && random.chance(0.3) ? { within: random.integer(1_000, 60_000) } : {}
  return { policy, ...within, ...(policy === 'all' && random.chance(0.5) ? { max: random.integer(1, 10) } : {}) }
}
