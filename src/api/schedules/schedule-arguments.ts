import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'
import { OVERLAPS, type Overlap } from '../../core/policies.js'
import { SCHEDULE_STATES, type ScheduleState } from '../../core/schedules/schedule.js'
import type { ScheduleQuery } from '../../core/store.js'
import { isLook, listQuery } from '../list-query.js'
import type { PutManyOptions } from './put-many.js'
import type { ScheduleFields } from './schedule-input.js'

const FILTERS = ['prefix', 'after', 'state', 'job', 'to', 'app', 'unstamped', 'look'] as const

/** Which schedules are meant. */
export type ScheduleFilter = Partial<Omit<ScheduleQuery, 'sink'>> & {
  /** The sink that they deliver to. */
  readonly to?: string
}

export function scheduleQuery(query: ScheduleFilter): ScheduleQuery {
  const { to, ...rest } = listQuery(query, FILTERS, 'schedules.list()', {
    state: (state) => SCHEDULE_STATES.includes(state as ScheduleState),
    unstamped: (unstamped) => typeof unstamped === 'boolean',
    look: isLook,
  })
  return to === undefined ? rest : { ...rest, sink: to }
}

const VERSION_OPTIONS = ['ifVersion']

/** Checks `ifVersion`. `what` is the operation's name for errors. */
export function versionOf(options: { readonly ifVersion?: number }, what: string, id: string): number | undefined {
  const where = () => `${what} of ${quote(id)}`
  checkOptions(options, VERSION_OPTIONS, where)
  const { ifVersion } = options
  if (ifVersion === undefined || (Number.isInteger(ifVersion) && ifVersion >= 0)) return ifVersion
  throw failure(
    'OPTION_INVALID',
    `${where()}: ifVersion is ${quote(ifVersion)}; it must be a version, or 0 for none yet`,
  )
}

export function prefixOf(options: { readonly prefix?: string }): string {
  checkOptions(options, ['prefix'], 'add')
  const { prefix = '' } = options
  if (typeof prefix === 'string') return prefix
  throw failure('OPTION_INVALID', `add: prefix is ${quote(prefix)}; it must be text, such as "user/"`)
}

type Entry = readonly [id: string, input: ScheduleFields]

export function checkEntries(entries: Iterable<Entry>): readonly Entry[] {
  const hint = 'give pairs, as in putMany([["digest/eu", { cron: "0 9 * * *", job: "digest" }]])'
  if (typeof (entries as Partial<Iterable<Entry>> | undefined)?.[Symbol.iterator] !== 'function') {
    throw failure('OPTION_INVALID', `putMany: ${quote(entries)} is no list; ${hint}`)
  }
  const list = [...entries]
  const odd = list.findIndex((entry) => !Array.isArray(entry) || entry.length !== 2)
  if (odd === -1) return list
  throw failure('OPTION_INVALID', `putMany: entry ${odd} is ${quote(list[odd])}; ${hint}`)
}

export function whenRefused(options: PutManyOptions): 'throw' | 'skip' {
  checkOptions(options, ['whenRefused'], 'putMany')
  const { whenRefused: choice = 'throw' } = options
  if (choice === 'throw' || choice === 'skip') return choice
  throw failure('OPTION_INVALID', `putMany: whenRefused is ${quote(choice)}; allowed are throw, skip`)
}

export function checkOverlap(where: string, overlap: Overlap): void {
  if (OVERLAPS.includes(overlap)) return
  throw failure('OPTION_INVALID', `${where}: overlap is ${quote(overlap)}; allowed are ${OVERLAPS.join(', ')}`)
}
