// @ts-check
/**
 * One process of the chaos: an ordinary instance whose handlers write down what they do in a log of their own, beside
 * the store. It can be killed, stopped and continued at any instant.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../../dist/index.js'
import { watchEventLoop } from './event-loop.js'
import { openStore } from './stores.js'

/** @type {import('./chaos.js').WorkerSettings} */
const { store: kind, log, lease } = JSON.parse(process.argv[2] ?? '{}')

/** One write is one line: the kernel keeps appends of several processes apart. */
function note(/** @type {object} */ line) {
  appendFileSync(log, `${JSON.stringify({ t: Date.now(), pid: process.pid, ...line })}\n`)
}

/** @param {import('../../dist/index.js').HandlerContext<unknown>} context */
function identity({ run, token, event }) {
  return { run: run.id, attempt: run.attempt, token, event: event.id, key: run.key?.name }
}

const belfry = createBelfry({
  store: await openStore(kind),
  lease,
  poll: '200ms',
  concurrency: 50,
  stopGrace: '2s',
  logger: {
    debug() {},
    info() {},
    warn: (fields, message) => note({ kind: 'warn', message, fields }),
    error: (fields, message) => note({ kind: 'error', message, fields }),
  },
})

belfry.job('quick', { run: (context) => work(context, 30) })
belfry.job('solo', { exclusive: { whenBusy: 'wait' }, run: (context) => work(context, 300) })

/**
 * @param {import('../../dist/index.js').HandlerContext<unknown>} context
 * @param {number} mostMs
 */
async function work(context, mostMs) {
  note({ kind: 'start', ...identity(context) })
  await sleep(Math.random() * mostMs)
  note({ kind: 'end', ...identity(context), aborted: context.signal.aborted })
}

belfry.on('run:succeeded', ({ run }) => note({ kind: 'settled', run: run.id, token: run.token, key: run.key?.name }))
belfry.on('run:stale', ({ run }) => note({ kind: 'stale', run: run.id, token: run.token }))
belfry.on('instance:lost', ({ instance }) => note({ kind: 'lost', instance }))

watchEventLoop(50, (lateMs) => note({ kind: 'blocked', lateMs: Math.round(lateMs) }))

process.on('SIGTERM', async () => {
  await belfry.stop()
  process.exit(0)
})

await belfry.start()
note({ kind: 'up', instance: belfry.instance })
