/**
 * Keys of other shards. A run is in the shard of its schedule, its key in the shard of the key's name, and no script sees
 * both. So a ticket represents the run in the key's shard: the ticket queues, waits in line, is claimed and holds the key
 * there, like any run with a key. The instance that claims the ticket starts the run in the run's shard, with the ticket's
 * token.
 *
 *   run's shard                                     key's shard
 *   ready, in ticket-wanted ──── deliver ─────────► ticket: ready ◄────────────┐
 *                                                     │ claim: it holds the key │
 *   ready, not yet ◄──────────── start-runs ──────  running, unconfirmed       │
 *     │      ──── report (again in so long) ──────────────────────────────────►┘
 *   running ◄─────────────────── start-runs ──────  running, unconfirmed
 *     │      ──── report (started) ───────────────► running
 *     │      ──── expect-end ─────────────────────► running, unconfirmed
 *   succeeded, … (settle)                             │
 *     │      ──── report (over) ──────────────────► gone: the key is free
 *   ready again (retry, takeover) ── deliver ─────► ticket: ready
 *
 * While a ticket is unconfirmed, its run may not be running: it has not started yet, or has ended already. So the key may
 * be free, and a copy that would skip because of it waits, until the start is confirmed or the ticket is gone.
 * After expect-end no confirmation counts: an old connection may deliver one late.
 *
 * A run that waits for others of its schedule has a ticket, too. That ticket only waits for its run, and counts against the
 * key. A run that was enqueued on condition that its key is free gets its ticket on that condition, and is removed
 * without it.
 *
 * Order: in the key's shard the oldest ticket that is due takes the key first. An older run whose ticket has not arrived
 * there, or was lost in a failover, cannot be seen. So a run's own shard checks the order once more, for runs of one
 * schedule: start-runs refuses a run while an older one is ready, and sends the ticket of that one again.
 *
 * A ticket is there for as long as its run needs it. Only the run's shard knows that:
 *
 * - Ticket not sent, or lost on the way: the run stays in `ticket-wanted` until its ticket is known to be there. Sweeps
 *   send what is left, and send tickets again that are not claimed for long. A ticket that is there already stays as it is.
 * - Ticket claimed, run not started (crash, lost reply): the beat does not list the ticket, or the instance dies: the ticket
 *   becomes ready again. A claim whose confirmation was lost is repeated with its number.
 * - Ticket claimed, and the run cannot start yet, because the clock of its shard is behind, for example: the ticket becomes
 *   ready again, at once or later.
 * - The run ends without a settlement: it is in `ticket-unwanted` until its ticket is gone. If the ticket is claimed
 *   before, its claimer or the delivery finishes it, whichever comes first, and the key is free.
 * - A waiting run is lost in a failover: its ticket is not sent again, and ends when that has lasted for long.
 * - The key is taken from the ticket (lease over, reset): the ticket is claimed again, with a higher token, and starting the
 *   run with that token fences the attempt before it.
 * - The run's shard takes the run from its instance: the delivery frees the key for the next attempt.
 * - Crash between settle and report: the ticket outlives its run until its instance is declared dead; then it is claimed,
 *   and finished because its run needs no start. A settlement is refused once the instance's lease has run out in the run's
 *   shard, which happens before it does for the ticket.
 */
import type { NewRun } from '../../../../core/runs/run.js'
import type {
  ClaimedRun,
  ClaimRequest,
  EnqueueResult,
  Settlement,
  SettleResult,
  SkippedRun,
} from '../../../../core/store.js'
import { flag, listOf, luaScript, maybe, named, number, text } from '../../connection/lua-script.js'
import type { Server } from '../../connection/server.js'
import { numberIn, runId, ticketOf, toldRun } from '../../runs/run-codec.js'
import { skippedRuns, toSkippedRuns } from '../../runs/skipped-run.js'
import { homeOf, inShards, keyElsewhere } from '../shards.js'
import checkSource from './check-key.lua'
import expectEndSource from './expect-end.lua'
import reportSource from './report.lua'
import startSource from './start-runs.lua'

const startScript = luaScript({
  name: 'cluster/tickets/start-runs',
  source: startSource,
  writes: true,
  takes: { instance: text, claim: number, runs: listOf(named({ run: text, token: text })) },
  /** A run that was started, or when its ticket may be claimed again. Neither: the run needs no start. */
  gives: { runs: listOf(named({ run: maybe(text), againInMs: maybe(number) })) },
})

const reportScript = luaScript({
  name: 'cluster/tickets/report',
  source: reportSource,
  writes: true,
  takes: { tickets: listOf(named({ ticket: text, token: text, hasStarted: flag, againInMs: maybe(number) })) },
  /** Runs that waited to learn whether their key is busy. */
  gives: { skipped: skippedRuns },
})

/** Starts the runs whose tickets were claimed, and reports that. A ticket whose run cannot start frees its key at once. */
export async function startTickets(
  server: Server,
  shard: number,
  { instance, claim }: ClaimRequest,
  tickets: readonly ClaimedRun[],
): Promise<{ readonly runs: readonly ClaimedRun[]; readonly skipped: readonly SkippedRun[] }> {
  if (tickets.length === 0) return { runs: [], skipped: [] }
  const home = ({ id }: ClaimedRun) => homeOf(server, id)
  const started = await inShards(tickets, home, async (own, those) => {
    const asked = those.map(({ id, token }) => ({ run: numberIn(id), token: String(token) }))
    return (await server.call(startScript, own, { instance, claim, runs: asked })).runs
  })
  const runs = tickets.flatMap((ticket, at) => {
    const { token, startedAt } = ticket
    const run = started[at]?.run
    return run === undefined ? [] : [{ ...toldRun(home(ticket), run), token, startedAt }]
  })
  for (const { id, token } of runs) server.tickets.add({ run: id, token }, shard)
  const { skipped } = await server.call(reportScript, shard, {
    tickets: tickets.map(({ id, token }, at) => {
      const { run, againInMs } = started[at] ?? {}
      return { ticket: ticketOf(id), token: String(token), hasStarted: run !== undefined, againInMs }
    }),
  })
  return { runs, skipped: await toSkippedRuns(server, shard, skipped) }
}

const expectEndScript = luaScript({
  name: 'cluster/tickets/expect-end',
  source: expectEndSource,
  writes: true,
  takes: { tickets: listOf(named({ ticket: text, token: text })) },
  gives: { held: listOf(flag) },
})

/** Settles runs whose keys are in other shards: asks for the tickets, settles, and frees the keys. */
export async function settleTickets(
  server: Server,
  settlements: readonly Settlement[],
  settle: (settlements: readonly (Settlement & { readonly hasLostKey?: boolean })[]) => Promise<SettleResult[]>,
): Promise<SettleResult[]> {
  const keyShard = (each: Settlement) => server.tickets.shardOf(each) ?? 0
  const refOf = ({ run, token }: Settlement) => ({ ticket: ticketOf(run), token: String(token) })
  const held = await inShards(settlements, keyShard, async (shard, own) => {
    return (await server.call(expectEndScript, shard, { tickets: own.map(refOf) })).held
  })
  const results = await settle(settlements.map((each, at) => (held[at] ? each : { ...each, hasLostKey: true })))
  const over = settlements.filter((_, at) => held[at])
  await inShards(over, keyShard, async (shard, own) => {
    await server.call(reportScript, shard, { tickets: own.map((each) => ({ ...refOf(each), hasStarted: false })) })
    return []
  })
  for (const each of settlements) server.tickets.remove(each)
  return results
}

const checkScript = luaScript({
  name: 'cluster/tickets/check-key',
  source: checkSource,
  takes: { key: text, permits: number, readyAt: maybe(number), delayMs: number },
  gives: { winner: maybe(text) },
})

/**
 * The run that has a checked key in another shard, as far as can be seen from here. Of two that ask at once both may pass:
 * the key's shard decides when they get their tickets there.
 */
export async function busyElsewhere(server: Server, shard: number, run: NewRun): Promise<EnqueueResult | undefined> {
  const { key, readyAt, delayMs = 0 } = run
  const home = checkedElsewhere(server, shard, run)
  if (home === undefined || key === undefined || key === 'unstamped') return undefined
  const { winner } = await server.call(checkScript, home, { key: key.name, permits: key.limit, delayMs, readyAt })
  return winner === undefined ? undefined : { outcome: 'busy', run: runId(home, winner) }
}

/** The result for a run that was made: one that met a busy key when it got its ticket was not enqueued after all. */
export async function refusedElsewhere(
  server: Server,
  shard: number,
  run: NewRun | undefined,
  result: EnqueueResult,
): Promise<EnqueueResult> {
  if (result.outcome !== 'enqueued' || run === undefined || checkedElsewhere(server, shard, run) === undefined)
    return result
  const winner = await server.readText(shard, ['GET', `ticket-refused:${numberIn(result.run)}`])
  return winner === undefined ? result : { outcome: 'busy', run: winner }
}

function checkedElsewhere(server: Server, shard: number, { key, checkKey }: NewRun): number | undefined {
  return checkKey === true ? keyElsewhere(server, shard, key) : undefined
}
