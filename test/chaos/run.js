// @ts-check
/** `npm run chaos -- --store postgres --liveness advisory --minutes 5 --seed 42`: the long form. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chaos } from './chaos.js'
import { FAILOVERS } from './failover-setup.js'
import { repeatCommand } from './repeat-command.js'

/** The default number of processes and schedules for each store. */
const STORES = {
  sqlite: { processes: 4, schedules: 200 },
  postgres: { processes: 8, schedules: 100 },
  redis: { processes: 8, schedules: 100 },
  'redis-cluster': { processes: 8, schedules: 100 },
}

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    liveness: { type: 'string' },
    failover: { type: 'string' },
    pgbouncer: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    processes: { type: 'string' },
    schedules: { type: 'string' },
    stress: { type: 'boolean', default: false },
  },
})
const store = storeNamed(values.store)
const liveness = livenessNamed(values.liveness)
if (values.pgbouncer && store !== 'postgres') {
  console.error('--pgbouncer is there for --store postgres')
  process.exit(2)
}
const failover = failoverNamed(values.failover)
if (values.stress) {
  if (values.store !== 'postgres') {
    console.error('--stress is there for --store postgres')
    process.exit(2)
  }
  const env = { ...process.env, BELFRY_STRESS_SECONDS: String(Number(values.minutes) * 60), SEED: values.seed }
  const { status } = spawnSync('npx', ['vitest', 'run', 'test/stores/postgres-stress.test.ts'], {
    env,
    stdio: 'inherit',
  })
  process.exit(status ?? 1)
}
const byDefault = STORES[store]
const settings = {
  store,
  ...(liveness === undefined ? {} : { liveness }),
  ...(failover === undefined ? {} : { failover }),
  isPooled: values.pgbouncer,
  seconds: Number(values.minutes) * 60,
  processes: Number(values.processes ?? byDefault.processes),
  schedules: Number(values.schedules ?? byDefault.schedules),
  seed: Number(values.seed),
}
const folder = mkdtempSync(join(tmpdir(), 'belfry-chaos-store-'))
console.log(`seed ${settings.seed}; to repeat it: ${repeatCommand(settings)}`)
const { violations, late, counts } = await chaos({
  ...settings,
  store: setupKind(),
  say: (line) => console.log(`${new Date().toISOString()} ${line}`),
})
rmSync(folder, { recursive: true, force: true })
console.log(JSON.stringify(counts))
const wrong = [...violations, ...late]
for (const violation of wrong.slice(0, 20)) console.error(`VIOLATION ${violation}`)
if (wrong.length > 0) {
  console.error(`${wrong.length} violations of seed ${settings.seed}; repeat with: ${repeatCommand(settings)}`)
  process.exit(1)
}
console.log('nothing lost, nothing twice, nothing overlapping')

/** @returns {import('./store-setups.js').StoreSetupKind} */
function setupKind() {
  if (store === 'sqlite') return { name: store, path: join(folder, 'belfry.db') }
  if (store === 'postgres' && failover !== undefined) return { name: store, failover }
  if (store === 'postgres')
    return { name: store, ...(liveness === undefined ? {} : { liveness }), isPooled: values.pgbouncer }
  return { name: store }
}

/** @param {string | undefined} name @returns {import('./stores.js').Liveness | undefined} */
function livenessNamed(name) {
  if (name === undefined || (store === 'postgres' && (name === 'lease' || name === 'advisory'))) return name
  console.error('--liveness is lease or advisory, and there for --store postgres')
  process.exit(2)
}

/** @param {string | undefined} name @returns {import('./failover-setup.js').Failover | undefined} */
function failoverNamed(name) {
  const found = FAILOVERS.find((failover) => failover === name)
  if (name === undefined || (found !== undefined && store === 'postgres')) return found
  console.error(`--failover is one of ${FAILOVERS.join(', ')}, and there for --store postgres`)
  process.exit(2)
}

/** @param {string} name @returns {keyof typeof STORES} */
function storeNamed(name) {
  if (name === 'sqlite' || name === 'postgres' || name === 'redis' || name === 'redis-cluster') return name
  console.error(`store "${name}" is unknown: allowed are ${Object.keys(STORES).join(', ')}`)
  process.exit(2)
}
