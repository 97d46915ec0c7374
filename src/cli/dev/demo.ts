/** The schedules of `belfry dev`: one tick at once, a fast one, a slow exclusive one, and one that fails and is retried. */
import type { Belfry } from '../../belfry.js'

export const LEASE = '3s'

export const DEMO = [
  { id: 'hello', about: 'once, right at the start' },
  { id: 'heartbeat', about: 'every second' },
  { id: 'report', about: 'every 5 seconds, takes 3, exclusive: never overlaps itself' },
  { id: 'flaky', about: 'every 10 seconds, fails once, then succeeds' },
] as const

/** All replicas must declare identical schedules. `hello` fires once, at `helloAt`, so every replica gets the same `helloAt`. */
export function declareDemo(belfry: Belfry, helloAt: number): void {
  belfry.job('hello', { run: () => {} })
  belfry.job('heartbeat', { keep: 'failures', run: () => {} })
  belfry.job('report', {
    exclusive: { whenBusy: 'wait' },
    run: ({ signal }) =>
      new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, 3_000)
        signal.addEventListener('abort', () => {
          clearTimeout(timer)
          reject(signal.reason)
        })
      }),
  })
  belfry.job('flaky', {
    retry: { attempts: 3, backoff: 'fixed', delay: '1s' },
    run: ({ run }) => {
      if (run.attempt === 1) throw new Error('out of paper')
    },
  })
  belfry.schedule('hello', { at: new Date(helloAt), job: 'hello', onFinish: 'keep' })
  belfry.schedule('heartbeat', { cron: '* * * * * *', job: 'heartbeat' })
  belfry.schedule('report', { cron: '*/5 * * * * *', job: 'report' })
  belfry.schedule('flaky', { cron: '*/10 * * * * *', job: 'flaky' })
}
