/**
 * Hints from other processes, by LISTEN. While the connection is down polling does all there is to do; after such a gap
 * everything may have changed, so everything is hinted at.
 */

import type { Handed } from '../lease-row.js'
import type { DirectClient, DirectUse } from './direct-connection.js'
import { type Change, changesIn } from './wakes.js'

export interface ListenerOptions {
  readonly channel: string
  /** What this process sends itself, it has already been told. */
  readonly self: string
  /** Without changes where the hint does not say what changed. */
  readonly heard: (changes?: readonly Change[]) => void
  /** Told when another process handed a lock to somebody, here or elsewhere. */
  readonly handed: (lease: Handed) => void
}

/** Begins what the database itself sends, with the commit that hands a lock over; a lease follows. */
export const HANDED = 'handed '

export class Listener implements DirectUse {
  readonly #options: ListenerOptions

  constructor(options: ListenerOptions) {
    this.#options = options
  }

  async prepare(client: DirectClient): Promise<void> {
    const { channel, self, heard, handed } = this.#options
    client.on('notification', ({ payload = '' }) => {
      const lease = payload.startsWith(HANDED) ? leaseIn(payload.slice(HANDED.length)) : undefined
      if (lease !== undefined) return handed(lease)
      const [from, ...words] = payload.split(' ')
      const changes = changesIn(words.join(' '))
      if (from !== self) heard(changes.length > 0 ? changes : undefined)
    })
    await client.query(`listen "${channel}"`)
  }

  ready(first: boolean): void {
    if (!first) this.#options.heard()
  }

  broken(): void {}
}

/** Anybody may send anything to the channel. What is no lease is a hint like any other that cannot be read. */
function leaseIn(text: string): Handed | undefined {
  try {
    return (JSON.parse(text) as Handed | null) ?? undefined
  } catch {
    return undefined
  }
}
