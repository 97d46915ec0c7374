// @ts-check
/**
 * A process that competes for one lock. Messages tell it what to do, and it answers with messages:
 *
 * - `work` holds the lock by `withLock` until the message `finish`, or blocks its event loop until a file exists;
 * - `wait` queues for the lock with `times` waiters, and keeps the lock once one of them gets it. It reports when all
 *   are in the queue.
 */
import { existsSync } from 'node:fs'
import { createBelfry } from '../../dist/index.js'

const store = await storeAt(JSON.parse(process.argv[2] ?? ''))
await store.open()
const belfry = createBelfry({ store })
/** @type {string[]} */
const lost = []
belfry.on('lock:lost', ({ name }) => void lost.push(name))
let finish = () => {}
const finished = new Promise((resolve) => {
  finish = () => resolve(undefined)
})

/** Imports only the store it needs, because many of these processes are started. @param {any} location */
async function storeAt(location) {
  if (location.sqlite) return (await import('../../dist/stores/sqlite/index.js')).sqlite(location.sqlite)
  if (location.postgres) return (await import('../../dist/stores/postgres/index.js')).postgres(location.postgres)
  return (await import('../../dist/stores/redis/index.js')).redis(location.redis)
}

/** @param {object} message */
const send = (message) => process.send?.(message)

/** Blocks the event loop, as a long computation does. @param {string} path */
function blockUntil(path) {
  const nap = new Int32Array(new SharedArrayBuffer(4))
  while (!existsSync(path)) Atomics.wait(nap, 0, 0, 10)
}

/** @param {import('../../dist/index.js').LockOptions} options @param {string | undefined} blockedUntil */
async function work(options, blockedUntil) {
  const work = belfry.withLock(
    'shared',
    async () => {
      send({ is: 'held' })
      if (blockedUntil === undefined) await finished
      else blockUntil(blockedUntil)
      return 'done'
    },
    options,
  )
  const outcome = await work.then(
    (value) => ({ value }),
    (error) => ({ code: error.code, value: error.value }),
  )
  send({ is: 'over', ...outcome, lost })
}

/** @param {import('../../dist/index.js').LockOptions} options @param {number} times */
async function wait(options, times) {
  const { acquire } = store.leases
  const queued = new Set()
  store.leases.acquire = async (request) => {
    const result = await acquire(request)
    if (!result.acquired && queued.add(request.holder).size === times) send({ is: 'waiting' })
    return result
  }
  const locks = Array.from({ length: times }, () => belfry.lock('shared', options))
  if ((await Promise.race(locks)) !== undefined) send({ is: 'held' })
}

process.on('message', (/** @type {any} */ { task, options, blockedUntil, times }) => {
  if (task === 'work') void work(options, blockedUntil)
  else if (task === 'wait') void wait(options, times)
  else finish()
})
process.once('disconnect', () => process.exit())
send({ is: 'ready' })
