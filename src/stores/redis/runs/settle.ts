/** Settles attempts. A settlement counts only with the newest token of a run that still holds its key. */
import type { Outcome } from '../../../core/runs/run.js'
import { toText } from '../../../core/runs/stored-text.js'
import type { Settlement, SettleResult } from '../../../core/store.js'
import { homeOf, inShards } from '../cluster/shards.js'
import { settleTickets } from '../cluster/tickets/tickets.js'
import { flag, listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { numberIn } from './run-codec.js'
import source from './settle.lua'

const settleScript = luaScript({
  name: 'runs/settle',
  source,
  writes: true,
  takes: {
    settlements: listOf(
      named({
        ...{ run: text, token: text, kind: text, delayMs: number, json: maybe(text) },
        /** The run's ticket has lost the key, so the settlement is stale, unless the attempt was settled before. */
        hasLostKey: maybe(flag),
      }),
    ),
  },
  gives: { settled: listOf(flag) },
})

type Asked = Settlement & { readonly hasLostKey?: boolean }

/** How many attempts one script settles. */
const CHUNK = 500

export async function settleRuns(server: Server, settlements: readonly Settlement[]): Promise<SettleResult[]> {
  const ticketed = settlements.filter((each) => server.tickets.shardOf(each) !== undefined)
  if (ticketed.length === 0) return settleAll(server, settlements)
  const others = settlements.filter((each) => !ticketed.includes(each))
  const [first, second] = await Promise.all([
    settleTickets(server, ticketed, (asked) => settleAll(server, asked)),
    settleAll(server, others),
  ])
  const [theirs, ours] = [first.values(), second.values()]
  return settlements.map((each) => (ticketed.includes(each) ? theirs : ours).next().value ?? 'stale')
}

function settleAll(server: Server, settlements: readonly Asked[]): Promise<SettleResult[]> {
  return inShards(
    settlements,
    ({ run }) => homeOf(server, run),
    (shard, own) => settleShard(server, shard, own),
  )
}

/** Sends all scripts at once, so that the server executes one while the reply of another is on its way. */
async function settleShard(server: Server, shard: number, settlements: readonly Asked[]): Promise<SettleResult[]> {
  const answers: Promise<{ readonly settled: readonly boolean[] }>[] = []
  for (let first = 0; first < settlements.length; first += CHUNK) {
    const own = settlements.slice(first, first + CHUNK).map(({ run, token, outcome, hasLostKey }) => {
      return { run: numberIn(run), token: String(token), kind: outcome.kind, ...endingOf(outcome), hasLostKey }
    })
    answers.push(server.call(settleScript, shard, { settlements: own }))
  }
  return (await Promise.all(answers)).flatMap(({ settled }) => settled.map((is) => (is ? 'settled' : 'stale')))
}

function endingOf(outcome: Outcome): { readonly delayMs: number; readonly json: string | undefined } {
  const delayMs = outcome.kind === 'retry' ? outcome.delayMs : 0
  if (outcome.kind === 'succeeded')
    return { delayMs, json: outcome.result === undefined ? undefined : toText(outcome.result) }
  return { delayMs, json: 'error' in outcome ? JSON.stringify(outcome.error) : undefined }
}
