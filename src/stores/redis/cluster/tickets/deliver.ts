/** Carries the messages between runs and their tickets in other shards (tickets.ts). Each step is safe to repeat. */
import type { Json } from '../../../../core/checks/json.js'
import { listOf, luaScript, maybe, named, number, type Shape, text } from '../../connection/lua-script.js'
import type { Server } from '../../connection/server.js'
import { runId } from '../../runs/run-codec.js'
import deliveredSource from './delivered.lua'
import outboxSource from './outbox.lua'
import receiveSource from './receive.lua'

/** A ticket to send. `receive` takes it exactly as `outbox` returned it. */
interface Wanted {
  readonly shard: number
  readonly run: string
  readonly state: string
  readonly attempt: number
  readonly [field: string]: Json
}
const wanted: Shape<Wanted> = { read: (each) => each as Wanted, names: [] }

const outboxScript = luaScript({
  name: 'cluster/tickets/outbox',
  source: outboxSource,
  takes: {},
  gives: {
    wanted: listOf(wanted),
    unwanted: listOf(named({ shard: number, run: text, attempt: number })),
    skipped: listOf(named({ shard: number, ticket: text, run: text, reason: text })),
  },
})

const receiveScript = luaScript({
  name: 'cluster/tickets/receive',
  source: receiveSource,
  writes: true,
  takes: {
    unwanted: listOf(named({ ticket: text, attempt: number })),
    wanted: listOf(wanted),
    skipped: listOf(named({ run: text, reason: text })),
  },
  gives: { received: listOf(named({ winner: maybe(text) })) },
})

const deliveredScript = luaScript({
  name: 'cluster/tickets/delivered',
  source: deliveredSource,
  writes: true,
  takes: {
    sent: listOf(named({ run: text, state: text, attempt: number })),
    refused: listOf(named({ run: text, winner: text })),
    unwanted: listOf(text),
    skipped: listOf(text),
  },
  gives: {},
})

/**
 * Delivers a shard's outbox to the other shards: tickets to make, tickets to end because their runs have ended, and
 * runs to skip because their tickets were skipped.
 */
export async function deliverTickets(server: Server, shard: number): Promise<void> {
  const outbox = await server.call(outboxScript, shard, {})
  const shards = new Set([...outbox.wanted, ...outbox.unwanted, ...outbox.skipped].map((each) => each.shard))
  await Promise.all([...shards].map((other) => deliverTo(server, shard, other, outbox)))
}

type Outbox = ReturnType<typeof outboxScript.answer>['gives']

async function deliverTo(server: Server, shard: number, other: number, outbox: Outbox): Promise<void> {
  const isTheirs = (each: { readonly shard: number }) => each.shard === other
  const [wanted, unwanted] = [outbox.wanted.filter(isTheirs), outbox.unwanted.filter(isTheirs)]
  const skipped = outbox.skipped.filter(isTheirs)
  const ticketOf = (run: string) => `${run}t${shard}`
  const { received } = await server.call(receiveScript, other, {
    wanted: wanted.map((each) => ({ ...each, ticket: ticketOf(each.run) })),
    unwanted: unwanted.map(({ run, attempt }) => ({ ticket: ticketOf(run), attempt })),
    skipped: skipped.map(({ run, reason }) => ({ run, reason })),
  })
  const winners = received.map(({ winner }) => winner)
  await server.call(deliveredScript, shard, {
    sent: wanted.filter((_, at) => winners[at] === undefined),
    refused: wanted.flatMap(({ run }, at) => {
      const winner = winners[at]
      return winner === undefined ? [] : [{ run, winner: runId(other, winner) }]
    }),
    unwanted: unwanted.map(({ run }) => run),
    skipped: skipped.map(({ ticket }) => ticket),
  })
}
