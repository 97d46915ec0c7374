/** POST /v1/schedules:preview and POST /v1/schedules:apply. */
import type { z } from 'zod'
import { locatedBelow } from '../../api/located.js'
import type { ApplyChange, ApplyResult } from '../../api/schedules/apply.js'
import { inputOf } from '../../api/schedules/schedule-input-of.js'
import type { Belfry } from '../../belfry.js'
import { systemClock } from '../../core/clock.js'
import { breather } from '../../core/in-turns.js'
import { instantMs } from '../../time/instant.js'
import { timeline } from '../../time/timeline.js'
import { zone } from '../../time/zone.js'
import { type FieldError, fieldErrors, invalidBody, problem, validBody } from '../http/problem.js'
import { json } from '../http/reply.js'
import { type Route, route, type ServerContext } from '../http/route.js'
import { mustUseNamed } from '../security/targets.js'
import { isVisible, mayMake, type Visible, visible } from '../security/visibility.js'
import type { ParsedServerOptions } from '../server-options.js'
import { iso } from '../shapes/fields.js'
import { previewOf, wantedSchedules } from '../shapes/requests.js'
import type { scheduleInput } from '../shapes/schedule.js'
import { applied, preview } from '../shapes/schedule-answers.js'
import { noSchedule } from './schedules.js'

const TAG = 'schedules'
const MAX_NAMED = 100
/** The check of a body ends when it has found this many errors. */
const MAX_ERRORS = 50

export function scheduleBulkRoutes(belfry: Belfry, options: ParsedServerOptions): readonly Route[] {
  return [previewRoute(belfry), applyRoute(belfry, options)]
}

function previewRoute(belfry: Belfry): Route {
  return route({
    ...{
      method: 'post',
      path: '/v1/schedules:preview',
      id: 'previewSchedule',
      tag: TAG,
      role: 'viewer',
      refuses: [404],
    },
    summary: 'The next ticks of a stored schedule, or of one in the body.',
    body: previewOf,
    answers: { 200: { description: 'The ticks.', schema: preview } },
    handle: async (c, { body: { id, schedule, ...options } }) => {
      c.env.cpu.charge(c.get('caller'), previewMs(options, schedule?.times !== undefined || id !== undefined))
      const known = id === undefined ? undefined : await visibleSchedule(belfry, c, id)
      const ticks = await belfry.schedules.preview(id ?? schedule ?? {}, options)
      return json({
        description: known?.description ?? describe(schedule ?? {}),
        data: ticks.map(({ at, readyAt }) => ({ at: iso(at), readyAt: iso(readyAt) })),
      })
    },
  })
}

const YEAR_MS = 365 * 24 * 3_600_000

/** An estimate of a preview's CPU time. With `times` it counts all ticks from now to `from`, about 10 µs for each year. */
function previewMs({ count, from }: z.output<typeof previewOf>, mayCount: boolean): number {
  const years =
    from === undefined || !mayCount ? 0 : Math.abs(instantMs(from, zone('UTC')) - systemClock.now()) / YEAR_MS
  return count * 0.003 + years * 0.01
}

async function visibleSchedule(belfry: Belfry, c: ServerContext, id: string) {
  const schedule = isVisible(c.get('caller'), 'schedule', { id }) ? await belfry.schedules.get(id) : undefined
  if (schedule === undefined) throw noSchedule(id)
  return schedule
}

/** Called after `preview`, which has validated the timeline. */
function describe({ cron, every, at, timezone, dst }: z.output<typeof scheduleInput>): string {
  const place = timezone === undefined ? {} : { timezone }
  if (every !== undefined) return timeline({ every }).describe()
  if (at !== undefined) return timeline({ at, ...place }).describe()
  return timeline({ cron: cron ?? '', ...place, ...(dst === undefined ? {} : { dst }) }).describe()
}

function applyRoute(belfry: Belfry, { limits }: ParsedServerOptions): Route {
  return route({
    ...{
      method: 'post',
      path: '/v1/schedules:apply',
      id: 'applySchedules',
      tag: TAG,
      role: 'operator',
      idempotent: true,
    },
    summary:
      'Creates and updates these schedules; with `prune`, removes the others. Atomic where the store has transactions.',
    body: wantedSchedules,
    check: checkWanted,
    answers: { 200: { description: 'The changes, made or planned.', schema: applied } },
    handle: async (c, { body: { schedules, ...options } }) => {
      for (const [id, input] of Object.entries(schedules)) {
        mayMake(c.get('caller'), id)
        mustUseNamed(c.get('caller'), input, ['schedules', id])
      }
      if (options.prefix !== undefined) mayMake(c.get('caller'), options.prefix)
      const isDone = options.dryRun !== true
      const apply = (dryRun: boolean) =>
        locatedBelow(['schedules'], () =>
          belfry.schedules.apply(schedules, { ...options, dryRun, maxRemoved: limits.batch }),
        )
      const caller = c.get('caller')
      const isCounted = isDone && caller.quota?.schedules !== undefined
      const wanted = isCounted ? Math.max(addedBy(await apply(true)), 0) : 0
      const { changes, unchanged } = await c.env.usage.within(
        ...([caller, 'schedules', wanted, () => apply(!isDone), addedBy] as const),
      )
      if (isDone && changes.length > 0) {
        const detail = { changes: changes.length, unchanged, prune: options.prune ?? false, ...idsOf(changes) }
        await c.env.audit(c.get('caller'), 'schedule.apply', options.prefix ?? c.get('caller').prefix ?? '*', detail)
      }
      return json({ applied: isDone, changes: visible(c.get('caller'), 'schedule', changes).map(toChange), unchanged })
    },
  })
}

/** Checks schedule by schedule and lets the event loop turn in between, because a body may hold a thousand of them. */
async function checkWanted(
  given: unknown,
  { batch }: ParsedServerOptions['limits'],
): Promise<z.output<typeof wantedSchedules>> {
  const { schedules, ...options } = isObject(given) ? given : {}
  if (!isObject(schedules)) return validBody(wantedSchedules.safeParse(given))
  const wanted = Object.entries(schedules)
  if (wanted.length > batch) throw tooMany(wanted.length, batch)
  const rest = validBody(wantedSchedules.safeParse({ ...options, schedules: {} }))
  const within = rest.prefix === undefined ? {} : { prefix: rest.prefix }
  const checked: z.output<typeof wantedSchedules>['schedules'] = {}
  const errors: FieldError[] = []
  const breathe = breather()
  for (const [id, schedule] of wanted) {
    const one = wantedSchedules.safeParse({ schedules: { [id]: schedule }, ...within })
    if (one.success) Object.assign(checked, one.data.schedules)
    else errors.push(...fieldErrors(one.error))
    if (errors.length >= MAX_ERRORS) break
    await breathe()
  }
  if (errors.length > 0) throw invalidBody(errors)
  return { ...rest, schedules: checked }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** How many more schedules there are after an apply than before. */
function addedBy({ changes }: ApplyResult): number {
  const count = (wanted: ApplyChange['change']) => changes.filter(({ change }) => change === wanted).length
  return count('create') - count('remove')
}

/** The changed ids for the audit entry, the first 100 of each kind. */
function idsOf(changes: readonly ApplyChange[]) {
  const ids = (wanted: ApplyChange['change']) =>
    changes
      .filter(({ change }) => change === wanted)
      .map(({ id }) => id)
      .slice(0, MAX_NAMED)
  return { removed: ids('remove'), created: ids('create'), updated: ids('update') }
}

function toChange({ id, change, before, after }: Visible<ApplyChange>) {
  return {
    ...{ id, change },
    ...(before === undefined ? {} : { before: inputOf(before) }),
    ...(after === undefined ? {} : { after: inputOf(after) }),
  }
}

function tooMany(count: number, most: number) {
  return problem(413, 'BATCH_TOO_LARGE', `${count} schedules are too many at once: at most ${most}`, {
    hint: 'send them as lines to /v1/schedules:import',
  })
}
