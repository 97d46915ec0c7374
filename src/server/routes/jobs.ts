import type { Belfry } from '../../belfry.js'
import { json } from '../http/reply.js'
import { type Route, route } from '../http/route.js'
import { mustUse } from '../security/targets.js'
import { mayMake, visible } from '../security/visibility.js'
import { listOf } from '../shapes/list.js'
import { newRun } from '../shapes/requests.js'
import { enqueued } from '../shapes/run.js'
import { jobResource } from '../shapes/store.js'
import { answerEnqueued, checkWait, enqueueDetail, isEnqueued } from './schedule-actions.js'

const TAG = 'jobs'

export function jobRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'get', path: '/v1/jobs', id: 'listJobs', tag: TAG, role: 'viewer' },
      summary: 'All jobs that instances run or have run, with the live instances of each.',
      answers: { 200: { description: 'In order of name.', schema: listOf(jobResource) } },
      handle: async (c) => {
        return json({ data: visible(c.get('caller'), 'job', await belfry.jobs()), nextCursor: null })
      },
    }),
    route({
      ...{
        method: 'post',
        path: '/v1/jobs/{name}/runs',
        id: 'enqueueRun',
        tag: TAG,
        role: 'operator',
        idempotent: true,
      },
      summary: 'Enqueues a run of a job. An instance that has the job runs it.',
      body: newRun,
      optionalBody: true,
      answers: {
        200: { description: 'The run has ended.', schema: enqueued },
        202: { description: 'The run has not ended, or another run has its key.', schema: enqueued },
      },
      handle: async (c, { body: { wait, payload, ...options }, repeatable }) => {
        const job = c.req.param('name') ?? ''
        mayMake(c.get('caller'), job)
        mustUse(c.get('caller'), { job })
        const waitMs = checkWait(wait)
        const dedupe = options.key === undefined ? repeatable?.dedupe : undefined
        const enqueue = () => belfry.enqueue(job, payload, { ...options, ...dedupe })
        const result = await c.env.usage.within(c.get('caller'), 'runs', 1, enqueue, isEnqueued)
        await c.env.audit(c.get('caller'), 'run.enqueue', job, enqueueDetail(result))
        return answerEnqueued(belfry, c, result, waitMs, dedupe?.key)
      },
    }),
  ]
}
