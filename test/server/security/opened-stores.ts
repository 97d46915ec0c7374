/** An empty store of each kind, for tests of the service. */
import type { Store } from '../../../src/core/store.js'
import { memory } from '../../../src/stores/memory/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import { freshPostgres } from '../../servers/fresh-postgres.js'
import { freshRedis } from '../../servers/fresh-redis.js'
import { temporaryFile } from '../../stores/temporary-file.js'

export interface OpenedStore {
  readonly store: Store
  close(): Promise<void>
}

export const openedStores = {
  memory: async () => ({ store: memory(), close: async () => {} }),
  sqlite: async () => {
    const file = temporaryFile()
    return { store: sqlite({ path: file.path }), close: () => file.remove() }
  },
  postgres: () => freshPostgres(),
  redis: () => freshRedis(),
  'redis in shards': () => freshRedis(3),
} satisfies Readonly<Record<string, () => Promise<OpenedStore>>>
