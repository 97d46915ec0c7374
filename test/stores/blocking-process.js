// @ts-check
/**
 * A process whose handlers block the event loop. It prints a line for each event.
 *
 *     node blocking-process.js '{"kind":"sqlite","path":"…"}' '{"maxBlock":"2s"}'
 */
import { createClient } from '@redis/client'
import { Redis } from 'ioredis'
import pg from 'pg'
import { createBelfry } from '../../dist/index.js'
import { postgres } from '../../dist/stores/postgres/index.js'
import { redis } from '../../dist/stores/redis/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

const [place = '{}', options = '{}'] = process.argv.slice(2)
const { kind, path, url, schema, prefix } = JSON.parse(place)

/** @type {Readonly<Record<string, () => import('../../dist/index.js').Store>>} */
const STORES = {
  sqlite: () => sqlite({ path }),
  postgres: () => postgres({ url, schema }),
  'postgres with a pool': () => postgres({ pool: poolOf(false), schema }),
  'postgres with a password function': () => postgres({ pool: poolOf(true), schema }),
  'postgres, advisory': () => postgres({ url, schema, liveness: 'advisory' }),
  redis: () => redis({ url, prefix }),
  'redis with a client of node-redis': () => redis({ client: createClient({ url }), prefix }),
  'redis with a client of ioredis': () => redis({ client: new Redis(url), prefix }),
}

/** A pool made from separate connection settings instead of a URL. The password may be a function. */
function poolOf(/** @type {boolean} */ hidesPassword) {
  const { hostname: host, port, username: user, password, pathname } = new URL(url)
  const secret = hidesPassword ? () => password : password
  return new pg.Pool({ host, port: Number(port), user, password: secret, database: pathname.slice(1), max: 4 })
}

/** Blocks without using the processor, so that other tests keep their cores. */
function block(/** @type {number} */ ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const store = STORES[kind]?.()
if (store === undefined) throw new Error(`there is no kind of store called ${kind}`)
const warn = (/** @type {object} */ fields, /** @type {string} */ message) =>
  console.error(`${message} ${JSON.stringify(fields)}`)
const debug = (/** @type {object} */ _, /** @type {string} */ message) => console.log(message)
const logger = { debug, info() {}, warn, error: warn }
const belfry = createBelfry({ store, lease: '6s', logger, ...JSON.parse(options) })

belfry.job('block', {
  run: ({ payload, run }) => {
    console.log(`began ${run.id}`)
    block(Number(payload))
    return process.pid
  },
})

belfry.job('hold and block', {
  run: async ({ payload }) => {
    const lock = await belfry.lock('held', { ttl: '6s' })
    if (lock === undefined) return { lock: 'busy' }
    block(Number(payload))
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    const isKept = !lock.signal.aborted && (await lock.release())
    return { lock: isKept ? 'kept' : 'lost', pid: process.pid }
  },
})

await belfry.start()
console.log('started')
process.on('SIGTERM', async () => {
  await belfry.stop()
  process.exit()
})
