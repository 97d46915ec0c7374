import type { SinkChoice } from '../../api/jobs/enqueue.js'
import type { Belfry } from '../../belfry.js'
import type { Target } from '../../core/runs/run.js'
import { durationMs } from '../../time/duration.js'
import type { Repeatable } from '../http/idempotency.js'
import { json, type Reply } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { mustUse } from '../security/targets.js'
import { mayMake, visible } from '../security/visibility.js'
import { listOf } from '../shapes/list.js'
import { type NewRun, newDelivery, newRun } from '../shapes/requests.js'
import { enqueued, enqueuedLinks } from '../shapes/run.js'
import { jobResource } from '../shapes/store.js'
import { answerEnqueued, enqueueDetail, isEnqueued } from './schedule-actions.js'

const TAG = 'jobs'
const ENQUEUE_ANSWERS = {
  200: { description: 'The run has ended.', schema: enqueued, links: enqueuedLinks },
  202: { description: 'The run has not ended, or another run has its key.', schema: enqueued, links: enqueuedLinks },
}

export function jobRoutes(belfry: Belfry): readonly Route[] {
  return [
    route({
      ...{ method: 'get', path: '/v1/jobs', id: 'listJobs', tag: TAG, role: 'viewer' },
      summary: 'All jobs that instances run or have run, with the live instances of each.',
      answers: { 200: { description: 'In order of name.', schema: listOf(jobResource, 'JobList') } },
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
      answers: ENQUEUE_ANSWERS,
      handle: async (c, { body, repeatable }) => {
        const job = c.req.param('name') ?? ''
        return enqueue(belfry, c, job, { job }, body, repeatable)
      },
    }),
    route({
      ...{
        method: 'post',
        path: '/v1/sinks/{name}/runs',
        id: 'enqueueDelivery',
        tag: TAG,
        role: 'operator',
        idempotent: true,
      },
      summary: 'Enqueues an event for a sink. An instance that has the sink delivers it.',
      body: newDelivery,
      optionalBody: true,
      answers: ENQUEUE_ANSWERS,
      handle: async (c, { body: { toOptions, ...body }, repeatable }) => {
        const to = c.req.param('name') ?? ''
        const target = { to, ...(toOptions === undefined ? {} : { toOptions }) }
        return enqueue(belfry, c, target, { sink: to }, body, repeatable)
      },
    }),
  ]
}

async function enqueue(
  belfry: Belfry,
  c: ServerContext,
  target: string | SinkChoice,
  used: Target,
  { wait, payload, ...options }: NewRun,
  repeatable: Repeatable | undefined,
): Promise<Reply> {
  const caller = c.get('caller')
  const name = 'job' in used ? used.job : used.sink
  mayMake(caller, name)
  mustUse(caller, used)
  const waitMs = durationMs(wait ?? 0)
  const dedupe = options.key === undefined ? repeatable?.dedupe : undefined
  const make = () => belfry.enqueue(target, payload, { ...options, ...dedupe })
  const result = await c.env.usage.within(caller, 'runs', 1, make, isEnqueued)
  await c.env.audit(caller, 'run.enqueue', name, enqueueDetail(result))
  return answerEnqueued(belfry, c, result, waitMs, dedupe?.key)
}
