/** A replica as a process of its own: notes go to the parent, and it ends when the parent does. */
import type { Belfry } from '../../belfry.js'
import { startReplica } from './replica.js'

const [path = '', helloAt = ''] = process.argv.slice(2)
let belfry: Belfry | undefined

function tell(message: unknown): void {
  // A parent that has just gone is noticed by `disconnect`, not here.
  if (process.connected) process.send?.(message, () => {})
}

async function end(): Promise<void> {
  await belfry?.stop()
  process.exit(0)
}

process.on('SIGTERM', () => void end())
process.on('disconnect', () => void end())
// The terminal sends these to the whole group; the parent decides when to end.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})

belfry = await startReplica(path, Number(helloAt), tell)
tell('ready')
