/** A replica in a child process: it sends run notes to the parent, and ends with it. */
import type { Belfry } from '../../belfry.js'
import { startReplica } from './replica.js'

const [path = '', helloAt = ''] = process.argv.slice(2)
let belfry: Belfry | undefined

function tell(message: unknown): void {
  // After the parent's death there is no receiver, and `disconnect` ends this process.
  if (process.connected) process.send?.(message, () => {})
}

async function end(): Promise<void> {
  await belfry?.stop()
  process.exit(0)
}

process.on('SIGTERM', () => void end())
process.on('disconnect', () => void end())
// The terminal sends these to the whole process group; the parent ends its replicas.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})

belfry = await startReplica(path, Number(helloAt), tell)
tell('ready')
