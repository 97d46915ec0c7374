/** What Node.js warns about while the work is done. It emits warnings at the end of a turn of the event loop. */
import { setImmediate as nextTurn } from 'node:timers/promises'

export async function warningsDuring(work: () => Promise<unknown>): Promise<readonly string[]> {
  const warnings: string[] = []
  const note = ({ name, message }: Error) => void warnings.push(`${name}: ${message}`)
  process.on('warning', note)
  try {
    await work()
    await nextTurn()
  } finally {
    process.off('warning', note)
  }
  return warnings
}
