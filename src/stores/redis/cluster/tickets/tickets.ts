/**
 * Tickets, for runs whose exclusive key is in another shard. A run is in the shard of its schedule, its key is in the shard of
 * the key's name, and no script can use both. So a ticket represents the run in the key's shard. Like any run with a key, the
 * ticket is queued, waits for the key, is claimed, and holds the key. The instance that claims the ticket then starts the run
 * in the run's shard, with the ticket's token.
 *
 *   run's shard                                     key's shard
 *   ready, in ticket-wanted ──── deliver ─────────► ticket: ready ◄────────────┐
 *                                                     │ claim: it holds the key │
 *   ready, not yet ◄──────────── start-runs ──────  running, unconfirmed       │
 *     │      ──── report (cannot start yet) ──────────────────────────────────►┘
 *   running ◄─────────────────── start-runs ──────  running, unconfirmed
 *     │      ──── report (started) ───────────────► running
 *     │      ──── expect-end ─────────────────────► running, unconfirmed
 *   succeeded, … (settle)                             │
 *     │      ──── report (ended) ─────────────────► gone: the key is free
 *   ready again (retry, takeover) ── deliver ─────► ticket: ready
 *
 * While a ticket is unconfirmed, its run may not be running: it has not started yet, or has ended already. So the key may
 * be free. A run that would be skipped because of this busy key waits instead, until the start is confirmed or the ticket
 * has ended. After expect-end a confirmation no longer counts, because an old connection may deliver one late.
 *
 * A run that waits for other runs of its schedule has a ticket, too. That ticket waits for its run, and counts against the
 * key. A run that is enqueued on condition that its key is free gets its ticket on the same condition, and is removed if
 * the ticket is refused.
 *
 * Order: in the key's shard the oldest ticket that is due takes the key first. That shard does not know of an older run
 * whose ticket has not arrived yet, or was lost in a failover. So the run's own shard checks the order again among the
 * runs of one schedule: start-runs refuses a run while an older one is ready, and sends the older run's ticket again.
 *
 * A ticket must exist for as long as its run needs it, which only the run's shard knows. What can go wrong:
 *
 * - Ticket not sent, or lost on the way: the run stays in `ticket-wanted` until the key's shard has confirmed its ticket.
 *   Each rescue sends what is left there, and sends a ticket again if its run has not started for long. Receiving a ticket
 *   twice changes nothing.
 * - Ticket claimed, run not started (crash, lost reply): the beat does not list the ticket, or the instance is declared
 *   dead, so the ticket becomes ready again. An instance that got no reply repeats its claim with the same number, and
 *   with it the start and the report.
 * - Ticket claimed, but the run cannot start yet, for example because the clock of its shard is behind: the ticket becomes
 *   ready again, at once or later.
 * - The run ends without a settlement: it stays in `ticket-unwanted` until its ticket has ended. If the ticket is claimed
 *   before that, its claimer or the delivery ends it, whichever comes first, and the key is free.
 * - A failover loses a waiting run: its ticket is no longer sent again, and after a while rescue.lua ends it.
 * - The key is taken from the ticket (expired lease, or reset): the ticket is claimed again with a higher token. Starting
 *   the run with that token fences its previous attempt.
 * - The run's shard takes the run from its instance: the next delivery frees the key for the run's next attempt.
 * - Crash between settle and report: the ticket outlives its run until its instance is declared dead. The ticket is then
 *   claimed again, and ended because its run needs no start. The run's shard refuses settlements after the instance's
 *   lease has expired there, and the ticket's lease expires only after that.
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
  /** Either the run that was started, or when its ticket may be claimed again. With neither, the run needs no start. */
  gives: { runs: listOf(named({ run: maybe(text), againInMs: maybe(number) })) },
})

const reportScript = luaScript({
  name: 'cluster/tickets/report',
  source: reportSource,
  writes: true,
  takes: { tickets: listOf(named({ ticket: text, token: text, hasStarted: flag, againInMs: maybe(number) })) },
  /** Runs that were skipped because their key is busy. They had waited to learn whether it is. */
  gives: { skipped: skippedRuns },
})

/**
 * Starts the runs of claimed tickets, and reports to the keys' shard which ones have started. A ticket whose run did
 * not start frees its key at once.
 */
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

/**
 * Settles runs whose keys are in other shards, in three steps: checks that their tickets still hold the keys, settles
 * the runs, and ends the tickets, which frees the keys.
 */
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
 * For a run that is enqueued only if its key in another shard is free: returns `busy` if the key is taken now. Two
 * concurrent calls may both pass this check. The key's shard decides between them when it receives their tickets.
 */
export async function busyElsewhere(server: Server, shard: number, run: NewRun): Promise<EnqueueResult | undefined> {
  const { key, readyAt, delayMs = 0 } = run
  const home = checkedElsewhere(server, shard, run)
  if (home === undefined || key === undefined || key === 'unstamped') return undefined
  const { winner } = await server.call(checkScript, home, { key: key.name, permits: key.limit, delayMs, readyAt })
  return winner === undefined ? undefined : { outcome: 'busy', run: runId(home, winner) }
}

/**
 * The final result for a run that enqueue.lua has made: `busy` if its key was taken when its ticket arrived. Such a run
 * has been removed again.
 */
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
