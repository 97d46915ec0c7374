/**
 * The long mode: `npm run test:oracle -- --cases 5000000 [--seed 7]` compares that many ticks, in every zone that the
 * runtime knows and around every clock change from 1990 to 2060. Runs the same tests as `npm test`.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { cases: { type: 'string', default: '5000000' }, seed: { type: 'string' } } })
for (const [name, value] of Object.entries(values)) {
  if (!/^\d+$/.test(value)) {
    console.error(`--${name} takes a whole number, not "${value}"`)
    process.exit(2)
  }
}

const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const run = spawnSync(process.execPath, [vitest, 'run', '--maxWorkers=2', 'test/oracle', 'src/time/zone.test.ts'], {
  stdio: 'inherit',
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  env: {
    ...process.env,
    BELFRY_ORACLE_CASES: values.cases,
    ...(values.seed === undefined ? {} : { BELFRY_ORACLE_SEED: values.seed }),
  },
})
process.exit(run.status ?? 1)
