// @ts-check
/** `npm run chaos -- --store sqlite --minutes 5 --seed 42`: the long form. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chaos } from './chaos.js'

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    processes: { type: 'string', default: '4' },
    schedules: { type: 'string', default: '200' },
  },
})
if (values.store !== 'sqlite') {
  console.error(`store "${values.store}" is unknown: sqlite is`)
  process.exit(2)
}
const folder = mkdtempSync(join(tmpdir(), 'belfry-chaos-store-'))
console.log(`seed ${values.seed}`)
const { violations, counts } = await chaos({
  store: { name: 'sqlite', path: join(folder, 'belfry.db') },
  seconds: Number(values.minutes) * 60,
  processes: Number(values.processes),
  schedules: Number(values.schedules),
  seed: Number(values.seed),
  say: (line) => console.log(`${new Date().toISOString()} ${line}`),
})
rmSync(folder, { recursive: true, force: true })
console.log(JSON.stringify(counts))
for (const violation of violations.slice(0, 20)) console.error(`VIOLATION ${violation}`)
if (violations.length > 0) {
  console.error(
    `${violations.length} violations; repeat with: npm run chaos -- --store ${values.store} --seed ${values.seed}`,
  )
  process.exit(1)
}
console.log('nothing lost, nothing twice, nothing overlapping')
