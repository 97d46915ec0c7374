/** Reading runs: one, or pages of them, newest first. */
import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import { isFinished, type Run } from '../../../core/runs/run.js'
import { numberAfter, readRunId } from '../../../core/runs/run-id.js'
import type { Page, RunQuery } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { mark, runCodec } from './run-codec.js'

const GET = `select ${runCodec.select('r')} from belfry.runs r where r.id = $1 and r.mark = $2`

export async function getRun(db: Database, id: string): Promise<Run | undefined> {
  const name = readRunId(id)
  const [row] = name === undefined ? [] : await db.read(GET, [name.number, mark.encode(name.mark)])
  return row === undefined ? undefined : runCodec.read(row)
}

export async function listRuns(db: Database, query: RunQuery): Promise<Page<Run>> {
  checkPageLimit(query.limit)
  const values: unknown[] = []
  const bind = (value: unknown) => `$${values.push(value)}`
  const { prefix, schedule, tick, job, sink, key, states, waitsFor, after, limit } = query
  const before = after === undefined ? [] : [`r.id < ${bind(numberAfter(after))}`]
  const conditions = [
    ...(prefix === undefined ? [] : [ownedBelow(prefix, bind)]),
    ...(schedule === undefined ? [] : [`r.schedule = ${bind(schedule)}`]),
    ...(tick === undefined ? [] : [`r.tick = ${bind(tick)}`]),
    ...(job === undefined ? [] : [`r.target = ${bind(`job:${job}`)}`]),
    ...(sink === undefined ? [] : [`r.target = ${bind(`sink:${sink}`)}`]),
    ...(key === undefined ? [] : [`r.key = ${bind(key)}`]),
    ...(states === undefined ? [] : [inStates('r', states)]),
    ...(waitsFor === undefined ? [] : [`r.state = 'waiting' and r.waits_for = '${waitsFor}'`]),
  ]
  // Most filters have no index that is in order of id, so `look` limits how many runs are read. Two filters need no
  // limit: a schedule's runs are few and have an index, and a single unfinished state has an index, too.
  const byState = conditions.length === 1 && states?.length === 1 && states.every((state) => !isFinished({ state }))
  const look = conditions.length === 0 || schedule !== undefined || byState ? undefined : query.look
  const table =
    look === undefined ? RUNS : `(select r.* from ${RUNS} r ${where(before)} order by r.id desc limit ${bind(look)})`
  const wanted = where(look === undefined ? [...conditions, ...before] : conditions)
  const most = bind(limit + 1)
  const rows = await db.search(schedule === undefined ? select(table, wanted, most) : bothHalves(wanted, most), values)
  const items = rows.slice(0, limit).map(runCodec.read)
  const last = items.at(-1)
  if (rows.length > limit && last !== undefined) return { items, next: last.id }
  const end = look === undefined ? undefined : await endOfLook(db, after, look)
  return end === undefined ? { items } : { items, next: end }
}

const RUNS = 'belfry.runs'
const END = 'select id from belfry.runs where id < $1 order by id desc offset $2 limit 1'
const NEWEST = '9223372036854775807'

/**
 * The condition that a run is in one of these states, as equalities, so that Postgres can use the indexes of single
 * states.
 */
export function inStates(run: string, states: readonly Run['state'][]): string {
  return `(${states.map((state) => `${run}.state = '${state}'`).join(' or ') || 'false'})`
}

/** The condition that a run's owner begins with the prefix. The owner is its schedule; without one, its job or sink. */
function ownedBelow(prefix: string, bind: (value: unknown) => string): string {
  const below = (column: string, beginning: string) =>
    `${column} >= ${bind(beginning)} and ${column} < ${bind(afterPrefix(beginning))}`
  const targets = ['job:', 'sink:'].map((kind) => below('r.target', `${kind}${prefix}`))
  return `(${below('r.schedule', prefix)} or r.schedule is null and (${targets.join(' or ')}))`
}

/** The id of the last run that `look` allows to read, for the next page. Undefined if fewer runs than that are left. */
async function endOfLook(db: Database, after: string | undefined, look: number): Promise<string | undefined> {
  const [row] = await db.read(END, [after === undefined ? NEWEST : numberAfter(after), look - 1], {
    patience: 'patient',
  })
  return row?.[0] ?? undefined
}

function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
}

function select(table: string, wanted: string, most: string): string {
  return `select ${runCodec.select('r')} from ${table} r ${wanted} order by r.id desc limit ${most}`
}

/**
 * A schedule's unfinished runs are in one index, and its history is in another. Reads both in order, and merges them.
 */
function bothHalves(wanted: string, most: string): string {
  const half = (condition: string) => `(${select(RUNS, `${wanted} and ${condition}`, most)})`
  return `${half("r.state < 'succeeded'")} union all ${half("r.state >= 'succeeded'")} order by id desc limit ${most}`
}
