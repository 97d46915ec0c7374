// @ts-check
/**
 * `npm run test:versions`: the tests of the stores on each version of a server that docs/postgres.md and docs/redis.md
 * promise.
 *
 *     --short                     the oldest and the newest Postgres, and fewer tests, as in CI
 *     --only 14,18                these versions of Postgres
 *     --redis FILE,FILE           also these programs of Redis or Valkey
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { postgresBinariesOf } from './postgres-binaries.js'

/** The versions that docs/postgres.md promises. */
const POSTGRES_VERSIONS = /** @type {string[]} */ (
  JSON.parse(readFileSync(new URL('versions.json', import.meta.url), 'utf8')).postgres
)

const root = fileURLToPath(new URL('../..', import.meta.url))

const POSTGRES_TESTS = ['test/contract/postgres', 'test/stores/postgres-', 'test/model/postgres']
const SHORT_POSTGRES_TESTS = [
  ...['test/contract/postgres-schema', 'test/contract/postgres.test'],
  ...['test/stores/postgres-cost', 'test/stores/postgres-unusable', 'test/stores/postgres-versions'],
]
const REDIS_TESTS = ['test/contract/redis', 'test/stores/redis-', 'test/model/redis']

const { values } = parseArgs({
  options: { short: { type: 'boolean', default: false }, only: { type: 'string' }, redis: { type: 'string' } },
})
const ends = [POSTGRES_VERSIONS[0], POSTGRES_VERSIONS.at(-1)].filter((version) => version !== undefined)
const versions = values.only?.split(',') ?? (values.short ? ends : POSTGRES_VERSIONS)

/** @type {{ name: string, passed: boolean, seconds: number }[]} */
const results = []

/**
 * @param {string} name
 * @param {readonly string[]} tests
 * @param {Record<string, string>} env
 */
function run(name, tests, env) {
  console.log(`\n== ${name}`)
  const began = performance.now()
  // A time bound that a stalled disk breaks is tried once more; `npm test` runs the same tests without a second try.
  const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', '--retry=1', ...tests], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  results.push({ name, passed: status === 0, seconds: Math.round((performance.now() - began) / 1_000) })
}

for (const major of versions) {
  const { binaries, version } = postgresBinariesOf(major)
  const tests = values.short ? SHORT_POSTGRES_TESTS : POSTGRES_TESTS
  run(`Postgres ${version}`, tests, { BELFRY_TEST_POSTGRES: '', BELFRY_TEST_POSTGRES_BINARIES: binaries })
}
for (const program of values.redis?.split(',') ?? []) {
  run(program, REDIS_TESTS, { BELFRY_TEST_REDIS: '', BELFRY_TEST_REDIS_PROGRAM: program })
}

console.log('')
for (const { name, passed, seconds } of results) console.log(`${passed ? 'passed' : 'FAILED'}  ${name} (${seconds} s)`)
if (results.some(({ passed }) => !passed)) process.exitCode = 1
