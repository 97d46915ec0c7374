// @ts-check
/**
 * One process of a chaos run: an ordinary instance whose handlers log what they do to a file, independently of the
 * store. It can be killed, stopped and continued at any time.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../../dist/index.js'
import { watchEventLoop } from './event-loop.js'
import { monotonicMs } from './monotonic.js'
import { SOLO } from './schedules.js'
import { openStore, writeEffect } from './stores.js'

/** @type {import('./chaos.js').WorkerSettings} */
const { store: kind, log, lease, slot } = JSON.parse(process.argv[2] ?? '{}')

/** Writes each line by one append, because the kernel never mixes the appends of several processes. */
function note(/** @type {object} */ line) {
  appendFileSync(log, `${JSON.stringify({ t: monotonicMs(), pid: process.pid, ...line })}\n`)
}

/** @param {import('../../dist/index.js').HandlerContext<unknown>} context */
function identity({ run, token, event }) {
  return { run: run.id, attempt: run.attempt, token, event: event.id, key: run.key?.name }
}

const store = await openStore(kind)
const belfry = createBelfry({
  store,
  lease,
  poll: kind.name === 'sqlite' ? '200ms' : '1s',
  concurrency: 50,
  stopGrace: '2s',
  logger: {
    debug() {},
    info() {},
    warn: (fields, message) => note({ kind: 'warn', message, fields }),
    error: (fields, message) => note({ kind: 'error', message, fields }),
  },
})

/** An attempt fails when the connection of its transaction breaks. With this many attempts the run still succeeds. */
const retry = /** @type {const} */ ({ attempts: 1_000, backoff: 'fixed', delay: '200ms' })

belfry.job('quick', { run: (context) => work(context, 30) })
belfry.job('brief', { run: (context) => work(context, 600) })
belfry.job('slow', { run: (context) => work(context, 2_000) })
belfry.job('enqueued', { run: () => {} })
belfry.job('solo', { ...SOLO, retry, run: (context) => alone(context, 300) })
belfry.job('picky', { exclusive: { by: ['key'], whenBusy: 'skip' }, retry, run: (context) => alone(context, 1_000) })

/**
 * @param {import('../../dist/index.js').HandlerContext<unknown>} context
 * @param {number} mostMs
 */
function alone(context, mostMs) {
  return store.supports.transactions ? commit(context, mostMs) : work(context, mostMs)
}

/**
 * @param {import('../../dist/index.js').HandlerContext<unknown>} context
 * @param {number} mostMs
 */
async function work(context, mostMs) {
  note({ kind: 'start', ...identity(context) })
  await sleep(Math.random() * mostMs)
  note({ kind: 'end', ...identity(context), aborted: context.signal.aborted })
}

/**
 * Writes an effect that is committed with the success of its run, or not at all.
 * @param {import('../../dist/index.js').HandlerContext<unknown>} context
 * @param {number} mostMs
 */
async function commit(context, mostMs) {
  note({ kind: 'start', ...identity(context) })
  await sleep(Math.random() * mostMs)
  await context.transaction((tx) => {
    note({ kind: 'end', ...identity(context), aborted: context.signal.aborted })
    const { run, token } = context
    return outcomeOf(writeEffect(kind, tx, { run: run.id, key: run.key?.name ?? '', token }))
  })
}

/** The result of a transaction is null, because it must be JSON. Synchronous transactions must not return a promise. */
function outcomeOf(/** @type {unknown} */ written) {
  return written instanceof Promise ? written.then(() => null) : null
}

belfry.on('run:succeeded', ({ run: { id, token, key, schedule } }) => {
  if (schedule !== undefined) note({ kind: 'settled', run: id, token, key: key?.name })
})
belfry.on('run:stale', ({ run }) => note({ kind: 'stale', run: run.id, token: run.token }))
belfry.on('instance:lost', ({ instance }) => note({ kind: 'lost', instance }))

watchEventLoop(50, (lateMs) => note({ kind: 'blocked', lateMs: Math.round(lateMs) }))

process.on('message', (/** @type {{ blockMs: number }} */ { blockMs }) => {
  for (const until = monotonicMs() + blockMs; monotonicMs() < until; );
})
process.channel?.unref()

process.on('SIGTERM', async () => {
  await belfry.stop()
  process.exit(0)
})

/** Repeatedly takes a lock that all processes contend for. The logged tokens must grow from holder to holder. */
async function takeLocks() {
  for (let count = 0; ; count += 1) {
    const [key, sentAt] = [`lock/${count % 3}`, monotonicMs()]
    try {
      const lock = await belfry.lock(key, { ttl: '4s', wait: '2s' })
      if (lock !== undefined) note({ kind: 'lock', key, token: lock.token, sentAt })
      await sleep(Math.random() * 20)
      await lock?.release()
    } catch {
      // The store is down, or has given the lock to another process.
    }
    await sleep(100 + Math.random() * 200)
  }
}

/** Exits when the parent has died: nothing else would end this process. */
const parent = process.ppid
setInterval(() => {
  if (process.ppid !== parent) process.exit(1)
}, 1_000).unref()

/** Retries, because the store may be down or unreachable. */
async function start() {
  for (;;) {
    try {
      return await belfry.start()
    } catch (error) {
      note({ kind: 'not-yet', message: String(error) })
      await sleep(200)
    }
  }
}

await start()
if (kind.name.startsWith('redis')) void takeLocks()
note({ kind: 'up', instance: belfry.instance, slot, clock: Date.now() })
process.send?.('up')
