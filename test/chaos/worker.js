// @ts-check
/**
 * One process of the chaos: an ordinary instance whose handlers write down what they do in a log of their own, beside
 * the store. It can be killed, stopped and continued at any instant.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../../dist/index.js'
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

/**
 * How late the event loop comes to a timer says how long something blocked it; less the time in which the machine had
 * no core for this process, which is nobody's fault here.
 */
const EVERY_MS = 10
let expected = performance.now() + EVERY_MS
let starved = starvedMs()
setInterval(() => {
  const now = performance.now()
  const starvedNow = starvedMs()
  const blockedMs = now - expected - (starvedNow - starved)
  expected = now + EVERY_MS
  starved = starvedNow
  if (blockedMs > 50) note({ kind: 'blocked', lateMs: Math.round(blockedMs) })
}, EVERY_MS).unref()

/** Milliseconds that the main thread has waited for a core since it began. */
function starvedMs() {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

process.on('SIGTERM', async () => {
  await belfry.stop()
  process.exit(0)
})

await belfry.start()
note({ kind: 'up', instance: belfry.instance })
