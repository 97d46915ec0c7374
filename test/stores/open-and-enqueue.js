// @ts-check
/** A process that opens a file, which may not exist yet, and enqueues one run. */
import { sqlite } from '../../dist/stores/sqlite/index.js'

const store = sqlite({ path: process.argv[2] ?? '' })
await store.open()
await store.runs.enqueue([{ target: { job: 'work' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' }])
await store.close()
