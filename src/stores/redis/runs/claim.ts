import type { ClaimedRun, ClaimRequest, ClaimResult } from '../../../core/store.js'
import { type Asked, inClaimOrder, nextOfAll, peekReady } from '../cluster/peek.js'
import { Damage, homeOf } from '../cluster/shards.js'
import { startTickets } from '../cluster/tickets/tickets.js'
import { listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './claim.lua'
import { toldRun } from './run-codec.js'
import { skippedRuns, toSkippedRuns } from './skipped-run.js'

const claimScript = luaScript({
  name: 'runs/claim',
  source,
  writes: true,
  takes: {
    instance: text,
    claim: number,
    limit: number,
    floor: number,
    targets: listOf(named({ name: text, limit: number })),
  },
  gives: { now: number, runs: listOf(text), skipped: skippedRuns, nextReadyAt: maybe(number) },
})

export async function claimRuns(server: Server, request: ClaimRequest): Promise<ClaimResult> {
  const asked = [
    ...request.jobs.map(({ name, limit }) => ({ name: `job:${name}`, limit })),
    ...request.sinks.map(({ name, limit }) => ({ name: `sink:${name}`, limit })),
  ]
  return server.shards === 1 ? claimShard(server, 0, request, asked) : claimAcross(server, request, asked)
}

async function claimShard(
  server: Server,
  shard: number,
  request: ClaimRequest,
  targets: readonly Asked[],
): Promise<ClaimResult> {
  const { instance, claim, limit, floor } = request
  const { runs, skipped, ...told } = await server.call(claimScript, shard, { instance, claim, limit, floor, targets })
  const started = runs.map((run) => toldRun(shard, run) as ClaimedRun)
  const isTicket = ({ id }: ClaimedRun) => homeOf(server, id) !== shard
  const others = await startTickets(server, shard, request, started.filter(isTicket))
  const own = await toSkippedRuns(server, shard, skipped)
  return {
    ...told,
    runs: [...started.filter((run) => !isTicket(run)), ...others.runs],
    skipped: [...own, ...others.skipped],
  }
}

/**
 * Peeks at all shards, and claims from those that have the first runs in claim order. A repeated claim asks every shard
 * which runs it has started.
 */
async function claimAcross(server: Server, request: ClaimRequest, asked: readonly Asked[]): Promise<ClaimResult> {
  const damage = new Damage()
  const peeks = await peekReady(server, request, asked, damage)
  const isRepeated = peeks.some(({ known }) => known)
  // New tokens are not below the latest clock of all shards, so that a master whose clock is behind does not issue
  // lower ones.
  const floor = Math.max(request.floor, ...peeks.map(({ now }) => now * 1_000))
  const claims = peeks.map(({ now, nextReadyAt, share, limit }, shard): ClaimResult | Promise<ClaimResult> => {
    if (limit === 0 && !isRepeated)
      return { now, runs: [], skipped: [], ...(nextReadyAt === undefined ? {} : { nextReadyAt }) }
    const own = asked.map(({ name }) => ({ name, limit: isRepeated ? 0 : (share.get(name) ?? 0) }))
    const claimed = claimShard(server, shard, { ...request, limit: isRepeated ? 0 : limit, floor }, own)
    return damage.spare(claimed, { now, runs: [], skipped: [] })
  })
  const results = await Promise.all(claims)
  const next = nextOfAll(
    peeks,
    results.map(({ nextReadyAt }) => nextReadyAt),
  )
  const runs = results.flatMap((result) => result.runs).sort(inClaimOrder)
  const skipped = results.flatMap((result) => result.skipped)
  const now = Math.max(...results.map((result) => result.now))
  return { now, runs, skipped, ...(next === undefined ? {} : { nextReadyAt: next }), ...damage.found }
}
