import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import { sameDefinition } from '../../core/schedules/declare.js'
import type { Schedule, ScheduleDefinition } from '../../core/schedules/schedule.js'
import type { ScheduleWrite, Store } from '../../core/store.js'
import { locatedBelow } from '../located.js'
import type { ScheduleFields } from './schedule-input.js'

export interface ApplyOptions {
  /** Return the changes without making them. */
  readonly dryRun?: boolean
  /** Remove schedules under `prefix` that are not given. */
  readonly prune?: boolean
  /**
   * Schedules with this prefix may be removed by `prune`; '' means all. Required with `prune`, so that a short list
   * cannot empty a store.
   */
  readonly prefix?: string
  /** Refuse to remove more schedules than this. Default any number. */
  readonly maxRemoved?: number
}

export interface ApplyChange {
  readonly id: string
  readonly change: 'create' | 'update' | 'remove'
  readonly before?: ScheduleDefinition
  readonly after?: ScheduleDefinition
}

export interface ApplyResult {
  readonly changes: readonly ApplyChange[]
  readonly unchanged: number
}

type Parse = (id: string, input: ScheduleFields) => Promise<ScheduleDefinition>

/** Checks all schedules before it writes any. Repeating an interrupted call completes it. */
export async function applySchedules(
  store: Store,
  parse: Parse,
  wanted: Readonly<Record<string, ScheduleFields>>,
  options: ApplyOptions,
): Promise<ApplyResult> {
  const { dryRun = false, prune = false, prefix, maxRemoved } = checkApply(wanted, options)
  if (prune && prefix === undefined) {
    throw failure(
      'OPTION_INVALID',
      'apply with prune needs a prefix: it says which schedules may be removed ("" for all)',
    )
  }
  const stray = prefix === undefined ? undefined : Object.keys(wanted).find((id) => !id.startsWith(prefix))
  if (stray !== undefined) throw failure('OPTION_INVALID', `schedule "${stray}" lies outside the prefix "${prefix}"`)
  const writes = await inTurns(
    Object.entries(wanted),
    async ([id, input]): Promise<ScheduleWrite> => ({
      id,
      definition: await locatedBelow([id], () => parse(id, input)),
    }),
  )
  const changes = [
    ...(await compare(store, writes)),
    ...(prune ? await surplus(store, wanted, prefix ?? '', maxRemoved) : []),
  ]
  if (!dryRun) await write(store, writes, changes)
  const written = changes.filter(({ change }) => change !== 'remove').length
  return { changes, unchanged: writes.length - written }
}

const TYPES = { dryRun: 'boolean', prune: 'boolean', prefix: 'string', maxRemoved: 'number' } as const

function checkApply(wanted: unknown, options: ApplyOptions): ApplyOptions {
  if (typeof wanted !== 'object' || wanted === null || Symbol.iterator in wanted) {
    throw failure(
      'OPTION_INVALID',
      `apply: ${quote(wanted)} is no set of schedules; give an object, as in apply({ "digest/eu": { … } })`,
    )
  }
  checkOptions(options, ['dryRun', 'prune', 'prefix', 'maxRemoved'], 'apply')
  for (const [name, value] of Object.entries(options) as [keyof ApplyOptions, unknown][]) {
    const wants = TYPES[name]
    if (value === undefined || typeof value === wants) continue
    throw failure('OPTION_INVALID', `apply: ${name} is ${quote(value)}; it must be a ${wants}`)
  }
  return options
}

async function compare(store: Store, writes: readonly ScheduleWrite[]): Promise<ApplyChange[]> {
  const known = await inTurns(writes, ({ id }) => store.schedules.get(id))
  const changes: ApplyChange[] = []
  for (const [at, { id, definition }] of writes.entries()) {
    const before = known[at]?.definition
    if (before === undefined) changes.push({ id, change: 'create', after: definition })
    else if (!sameDefinition(before, definition)) changes.push({ id, change: 'update', before, after: definition })
  }
  return changes
}

async function surplus(
  store: Store,
  wanted: Readonly<Record<string, ScheduleFields>>,
  prefix: string,
  most = Number.POSITIVE_INFINITY,
) {
  const surplus: ApplyChange[] = []
  for await (const { id, definition } of allSchedules(store, prefix)) {
    if (Object.hasOwn(wanted, id)) continue
    if (surplus.length >= most) {
      throw failure('BATCH_TOO_LARGE', `apply with prune would remove more than ${most} schedules under "${prefix}"`)
    }
    surplus.push({ id, change: 'remove', before: definition })
  }
  return surplus
}

async function* allSchedules(store: Store, prefix: string): AsyncGenerator<Schedule> {
  let after: string | undefined
  do {
    const page = await store.schedules.list({ prefix, limit: 1_000, ...(after === undefined ? {} : { after }) })
    yield* page.items
    after = page.next
  } while (after !== undefined)
}

/** Writes all changes in one operation of the store. On a store with transactions a crash leaves all of them or none. */
async function write(store: Store, writes: readonly ScheduleWrite[], changes: readonly ApplyChange[]): Promise<void> {
  const removed = changes.filter(({ change }) => change === 'remove').map(({ id }) => id)
  if (writes.length > 0 || removed.length > 0) await store.schedules.apply(writes, removed)
}
