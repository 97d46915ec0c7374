/**
 * Hints from other processes, by LISTEN. While the connection is down polling does all there is to do; after such a gap
 * everything may have changed, so everything is hinted at.
 */

import type { Handed } from '../lease-row.js'
import type { DirectClient, DirectUse } from './direct-connection.js'

export interface ListenerOptions {
  readonly channel: string
  /** What this process sends itself, it has already been told. */
  readonly self: string
  readonly heard: (bits: number) => void
  /** Told when another process handed a lock to somebody, here or elsewhere. */
  readonly handed: (lease: Handed) => void
}

const EVERYTHING = 31

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
      const [from, bits] = payload.split(' ')
      if (from !== self) heard(Number(bits) || EVERYTHING)
    })
    await client.query(`listen "${channel}"`)
  }

  ready(first: boolean): void {
    if (!first) this.#options.heard(EVERYTHING)
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
