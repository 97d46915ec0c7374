// @ts-check
/**
 * A second process beside the one under test: executes one command per input line, and prints the instant at which it
 * was done.
 */
import { createInterface } from 'node:readline'
import { createBelfry } from '../../dist/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

const belfry = createBelfry({ store: sqlite({ path: process.argv[2] ?? '' }), roles: [] })
const job = belfry.job('work', { run: () => null })
await belfry.start()
console.log('ready')
for await (const line of createInterface({ input: process.stdin })) {
  const [act, run = ''] = line.split(' ')
  if (act === 'enqueue') await job.enqueue()
  else if (act === 'cancel') await belfry.runs.cancel(run)
  else if (act === 'put') await belfry.schedules.put('soon', { at: new Date(Date.now() + 300), job: 'work' })
  console.log(Date.now())
}
await belfry.stop()
