import { it } from 'vitest'
import { memory } from '../../src/stores/memory/index.js'
import type { OpenedStore } from '../../src/testing/contract/scene.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { freshCluster } from '../servers/fresh-cluster.js'
import { freshPostgres } from '../servers/fresh-postgres.js'
import { freshRedis } from '../servers/fresh-redis.js'
import { freshFile } from '../stores/fresh-file.js'
import { LIMITING, runOverlapStory } from './overlap-stories.js'

const STORES: Readonly<Record<string, () => Promise<OpenedStore>>> = {
  memory: async () => {
    const clock = manualClock()
    return { store: memory({ clock }), elapse: clock.advance }
  },
  sqlite: async () => freshFile(),
  postgres: () => freshPostgres('postgres'),
  'postgres through pgbouncer': () => freshPostgres('pgbouncer'),
  redis: () => freshRedis(),
  'redis in three shards': () => freshRedis(3),
  'redis cluster': freshCluster,
}

/** `BELFRY_MODEL_SEED=7` runs other stories, `BELFRY_MODEL_RUNS=1000` runs more of them. */
const SEED = Number(process.env.BELFRY_MODEL_SEED ?? 1)
const STORIES = Math.ceil(Number(process.env.BELFRY_MODEL_RUNS ?? 100) / 50)

for (const [name, open] of Object.entries(STORES)) {
  for (const overlap of LIMITING) {
    it(`${name} keeps to ${overlap} in every story`, { timeout: 300_000 }, async () => {
      for (let seed = SEED; seed < SEED + STORIES; seed += 1) await runOverlapStory(open, overlap, seed)
    })
  }
}
