/** A replica as a process of its own: notes go to the parent, and it ends when the parent does. */
import { startReplica } from './replica.js'

const [path = ''] = process.argv.slice(2)
const belfry = await startReplica(path, (note) => process.send?.(note))

async function end(): Promise<void> {
  await belfry.stop()
  process.exit(0)
}

process.on('SIGTERM', () => void end())
process.on('disconnect', () => void end())
// The terminal sends Ctrl-C to the whole group; the parent decides when to end.
process.on('SIGINT', () => {})
process.send?.('ready')
