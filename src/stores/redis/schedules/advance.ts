/**
 * Recording ticks. One script reads a batch of due schedules, the planner plans them here, and another script writes
 * ticks, skips and cursors. What a plan rests on travels with it and is compared before anything of it is written: the
 * schedule's first line, with its version and its cursor, and, where ticks may not overlap, its unfinished runs. One that
 * somebody else has moved on meanwhile is left alone. So a tick is recorded once, whoever plans at the same time.
 *
 * Server and planner work at the same time: while one part is written, the next is planned, and the one after that has
 * been asked for already, because a server that finds several commands at once answers none of them before it has done
 * them all. The first part is small, so that the server soon has something to write.
 *
 * Two who plan at once would plan the same. A mark, which lasts half a second and is gone with the batch, makes the
 * second one look behind the batch of the first. Nothing but the sharing of work rests on it.
 */
import { setImmediate } from 'node:timers/promises'
import type { AdvanceRequest, AdvanceResult } from '../../../core/store.js'
import { peekDue } from '../cluster/peek.js'
import type { Reply, Server } from '../connection/server.js'
import { numberOf } from '../schema/words.js'
import type { Definitions } from './definitions.js'
import { type Due, type DueBatch, readDue } from './due-schedules.js'
import { PlanArgs } from './plan-args.js'
import { RECORD } from './record-ticks.js'

/**
 * How many schedules are read and written first, and how many at a time after that. What is read of as many with a small
 * payload fits into what a server sends in one go (64 KiB): the rest of a longer answer waits until the next command is done.
 */
const FIRST = 100
const PART = 300

export async function advanceSchedules(
  server: Server,
  definitions: Definitions,
  request: AdvanceRequest,
): Promise<AdvanceResult> {
  if (server.shards === 1) return advanceShard(server, 0, definitions, request)
  const { now, shares, nextDueAt } = await peekDue(server, request.lookaheadMs, request.limit)
  const steps = shares.map((limit, shard) =>
    limit === 0 ? undefined : advanceShard(server, shard, definitions, { ...request, limit }),
  )
  const results = (await Promise.all(steps)).filter((step) => step !== undefined)
  if (results.length === 0)
    return { now, schedules: 0, recorded: 0, skipped: 0, ...(nextDueAt === undefined ? {} : { nextDueAt }) }
  const after = await peekDue(server, 0, 0)
  return {
    now: after.now,
    schedules: results.reduce((sum, each) => sum + each.schedules, 0),
    recorded: results.reduce((sum, each) => sum + each.recorded, 0),
    skipped: results.reduce((sum, each) => sum + each.skipped, 0),
    ...(after.nextDueAt === undefined ? {} : { nextDueAt: after.nextDueAt }),
  }
}

async function advanceShard(
  server: Server,
  shard: number,
  definitions: Definitions,
  request: AdvanceRequest,
): Promise<AdvanceResult> {
  const { lookaheadMs, limit } = request
  const step = new Step(server, shard, definitions.self, request)
  const ahead: Promise<DueBatch>[] = []
  let [asked, written] = [0, 0]
  const askForMore = () => {
    const count = Math.min(asked === 0 ? FIRST : PART, limit - asked)
    if (count === 0) return
    // Those that were asked for and are not written yet stand before them.
    const query = { lookaheadMs, offset: asked - written, count, limit }
    ahead.push(underWay(readDue(server, shard, definitions, query)))
    asked += count
  }
  // Two from the start: a server that has something to write while the next is planned is never idle.
  askForMore()
  askForMore()
  for (let next = ahead.shift(); next !== undefined; next = ahead.shift()) {
    const part = await next
    await step.record(part, !part.full || ahead.length === 0)
    written += part.count
    if (part.full) askForMore()
  }
  return step.result()
}

/** What one call has recorded. A write is under way while the next is planned. */
class Step {
  readonly #server: Server
  readonly #shard: number
  readonly #self: string
  readonly #request: AdvanceRequest
  readonly #seen = new Set<string>()
  #writing: Promise<readonly Reply[]> | undefined
  #now = 0
  #next: number | undefined
  #recorded = 0
  #skipped = 0

  constructor(server: Server, shard: number, self: string, request: AdvanceRequest) {
    this.#server = server
    this.#shard = shard
    this.#self = self
    this.#request = request
  }

  async record({ now, due, nextDueAt }: DueBatch, last: boolean): Promise<void> {
    this.#now = now
    this.#next = nextDueAt
    // One that is due again after its step is not taken twice.
    const fresh = due.filter(({ id }) => !this.#seen.has(id))
    for (const { id } of fresh) this.#seen.add(id)
    if (fresh.length === 0) return
    const writing = underWay(this.#write(fresh, last ? this.#self : ''))
    // So that it is on its way while the next is planned.
    await setImmediate()
    await this.#written()
    this.#writing = writing
  }

  async result(): Promise<AdvanceResult> {
    await this.#written()
    const next = this.#next === undefined ? {} : { nextDueAt: this.#next }
    return { now: this.#now, schedules: this.#seen.size, recorded: this.#recorded, skipped: this.#skipped, ...next }
  }

  #write(batch: readonly Due[], mark: string): Promise<readonly Reply[]> {
    const plans = new PlanArgs()
    for (const due of batch) plans.add(due, this.#request, this.#now)
    return this.#server.write(RECORD, this.#shard, plans.args(this.#server.numbersFrom(), mark))
  }

  async #written(): Promise<void> {
    if (this.#writing === undefined) return
    const [recorded, skipped, next] = await this.#writing
    this.#writing = undefined
    this.#recorded += Number(recorded)
    this.#skipped += Number(skipped)
    this.#next = numberOf(String(next))
  }
}

/** A promise that is waited for later, or not at all if something else fails first. */
function underWay<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => {})
  return promise
}
