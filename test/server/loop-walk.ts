/** A request or more to each route, as heavy as the route allows. */

export interface Asked {
  readonly method: string
  /** `{run}` is a run that has not ended, `{seen}` one that was cancelled, `{n}` another number each time. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** With the token of a tenant that has a hundredth of the schedules, and quotas. */
  readonly asTenant?: boolean
  /** The answer is a refusal. */
  readonly isRefused?: boolean
}

type Line = readonly [method: string, path: string, body?: unknown, rest?: Omit<Asked, 'method' | 'path' | 'body'>]

const DAYS = { from: '2025-06-01T00:00:00Z', to: '2025-12-01T00:00:00Z' }
const TENANT = { asTenant: true }
const REFUSED = { isRefused: true }
const NDJSON = { headers: { 'content-type': 'application/x-ndjson' } }

/** `lockToken` is the token of the lock "held". */
export function walk(lockToken: number): readonly Asked[] {
  const lines: readonly Line[] = [
    ['GET', '/v1/schedules?limit=1000'],
    ['GET', '/v1/schedules?limit=1000&state=paused'],
    ['GET', '/v1/schedules?limit=1000&job=nobody'],
    ['GET', '/v1/schedules?limit=1000&state=paused', undefined, TENANT],
    ['GET', '/v1/schedules?limit=100&recent=true'],
    ['GET', '/v1/schedules:export'],
    ['POST', '/v1/schedules', { id: 'made/{n}', every: '1h', job: 'mail' }],
    ['GET', '/v1/schedules/user%2F7'],
    ['PUT', '/v1/schedules/put', { every: '1h', job: 'mail' }],
    ['PATCH', '/v1/schedules/put', { every: '2h' }],
    ['DELETE', '/v1/schedules/user%2F1{n}'],
    ['PUT', '/v1/schedules/user%2F99%2Fput', { every: '1h', job: 'mail' }, TENANT],
    ['POST', '/v1/schedules/user%2F7/pause', {}],
    ['POST', '/v1/schedules/user%2F7/resume', {}],
    ['POST', '/v1/schedules/user%2F7/trigger', { wait: '10ms' }],
    ['GET', '/v1/schedules/user%2F7/explain'],
    ['GET', `/v1/schedules/user%2F7/ticks?from=${DAYS.from}&to=${DAYS.to}&limit=1000`],
    ['POST', '/v1/schedules/user%2F7/backfill', DAYS],
    ['POST', '/v1/schedules:preview', { id: 'user/7', count: 1_000 }],
    ['POST', '/v1/schedules:apply', { schedules: thousand('new') }],
    ['POST', '/v1/schedules:apply', { schedules: {}, prune: true, prefix: 'user/9999', dryRun: true }],
    ['POST', '/v1/schedules:import?name=many', lines5000(), NDJSON],
    ['POST', '/v1/schedules:import', lines5000().replaceAll('1h', 'never'), NDJSON],
    ['GET', '/v1/schedules:import?name=many'],
    ['GET', '/v1/runs?limit=1000'],
    ['GET', '/v1/runs?limit=1000&state=failed,succeeded'],
    ['GET', '/v1/runs?limit=1000&state=running,waiting'],
    ['GET', '/v1/runs?limit=1000&job=nobody'],
    ['GET', '/v1/runs?limit=1000&schedule=user%2F7'],
    ['GET', '/v1/runs?limit=1000', undefined, TENANT],
    ['GET', '/v1/runs/{run}'],
    ['GET', '/v1/runs/{run}/log', undefined, REFUSED],
    ['POST', '/v1/runs/{run}/cancel'],
    ['POST', '/v1/runs/{seen}/retry'],
    ['POST', '/v1/runs:cancel', { all: true, limit: 1_000 }],
    ['POST', '/v1/runs:retry', { all: true, limit: 1_000 }],
    ['POST', '/v1/jobs/mail/runs', { payload: 1, wait: '10ms' }],
    ['POST', '/v1/sinks/hooks/runs', { payload: 1 }],
    ['POST', '/v1/operations', { kind: 'cancel-runs', job: 'mail' }],
    ['POST', '/v1/operations', { kind: 'retry-runs', job: 'nobody' }],
    ['POST', '/v1/operations', { kind: 'pause-schedules', prefix: 'user/9' }],
    ['POST', '/v1/operations', { kind: 'resume-schedules', prefix: '' }],
    ['GET', '/v1/operations/00000000-0000-0000-0000-000000000000', undefined, REFUSED],
    ['POST', '/v1/operations/00000000-0000-0000-0000-000000000000/cancel', undefined, REFUSED],
    ['GET', '/v1/jobs'],
    ['GET', '/v1/locks?limit=1000'],
    ['GET', '/v1/locks?limit=1000', undefined, TENANT],
    ['PUT', '/v1/locks/new{n}', { ttl: '1m' }],
    ['PUT', '/v1/locks/held', { ttl: '1m', wait: '10ms', holder: 'other' }, REFUSED],
    ['GET', '/v1/locks/held'],
    ['PATCH', '/v1/locks/held', { token: lockToken, ttl: '1h' }],
    ['POST', '/v1/locks/new1/reset'],
    ['DELETE', `/v1/locks/held?token=${lockToken}`],
    ['GET', '/v1/instances'],
    ['GET', '/v1/stats'],
    ['GET', '/v1/stats', undefined, TENANT],
    ['GET', '/v1/doctor'],
    ['GET', '/v1/events', undefined, { headers: { 'last-event-id': '1' } }],
    ['GET', '/v1/events', undefined, TENANT],
    ['PUT', '/v1/freeze', { note: 'for a moment' }],
    ['GET', '/v1/freeze'],
    ['DELETE', '/v1/freeze'],
    ['GET', '/v1/audit?limit=1000'],
    ['POST', '/v1/session', { token: 'wrong' }, REFUSED],
    ['GET', '/v1/session'],
    ['DELETE', '/v1/session'],
    ['GET', '/metrics'],
    ['GET', '/healthz'],
    ['GET', '/readyz'],
    ['GET', '/openapi.json'],
  ]
  return lines.map(([method, path, body, rest = {}]) => ({
    ...{ method, path, ...rest },
    ...(body === undefined ? {} : { body }),
  }))
}

function thousand(below: string) {
  return Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`${below}/${at}`, { every: '1h', job: 'mail' }]))
}

function lines5000(): string {
  const lines = Array.from({ length: 5_000 }, (_, at) => ({ id: `line/${at}`, every: '1h', job: 'mail' }))
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}
