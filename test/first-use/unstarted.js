// @ts-check
/** A process that neither starts nor stops its instance. It enqueues one run (`enqueue`), or holds a lock (`hold`). */
import { createBelfry } from '../../dist/index.js'
import { memory } from '../../dist/stores/memory/index.js'
import { postgres } from '../../dist/stores/postgres/index.js'
import { redis } from '../../dist/stores/redis/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

const [mode, kind, where = '', name = '', liveness] = process.argv.slice(2)

/** @type {Record<string, () => import('../../dist/index.js').Store>} */
const stores = {
  memory: () => memory(),
  sqlite: () => sqlite({ path: where }),
  postgres: () =>
    postgres({ url: where, schema: name, migrate: true, liveness: liveness === 'advisory' ? 'advisory' : 'lease' }),
  redis: () => redis({ url: where, prefix: name }),
  'redis-cluster': () => redis({ nodes: where.split(','), prefix: name }),
}

const store = stores[kind ?? '']?.()
if (store === undefined) throw new Error(`no store ${kind}`)
const belfry = createBelfry({ store, signals: true })
if (mode === 'enqueue') {
  await belfry.enqueue('greet')
  console.log('enqueued')
} else {
  await belfry.lock('held', { ttl: '10m' })
  console.log('held')
  setInterval(() => {}, 1_000)
}
