/**
 * npm run test:million [-- STORE…]: asks each route at a million schedules and runs, one store after another, each in a process of
 * its own, because the garbage of one store would count against the next. Exits with 1 if a route blocked the event loop for too long.
 */
import { spawnSync } from 'node:child_process'

const STORES = ['memory', 'sqlite', 'postgres', 'redis']
const given = process.argv.slice(2)
const unknown = given.filter((store) => !STORES.includes(store))
if (unknown.length > 0) throw new Error(`there is no store ${unknown.join(', ')}: choose from ${STORES.join(', ')}`)

for (const store of given.length > 0 ? given : STORES) {
  const { status } = spawnSync('npx', ['vitest', 'run', 'test/server/loop-delay.test.ts', '-t', `on '${store}'`], {
    stdio: 'inherit',
    env: { ...process.env, BELFRY_LOOP_SIZE: '1000000', BELFRY_LOOP_SHOW: '1' },
  })
  if (status !== 0) process.exitCode = 1
}
