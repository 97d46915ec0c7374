/**
 * Hints from other processes, by LISTEN. While the connection is down, hints are lost, and polling finds all changes.
 * After a reconnect, subscribers get a hint of every kind, because anything may have changed meanwhile.
 *
 * Two kinds of payloads arrive:
 *
 *     4f1c… runs leases           sender and changes; the sender is `-` if a transaction of the app sent it
 *     handed {"name":"a", …}      a lease that was handed to its next waiter, by the transaction that handed it over
 */
import type { Handed } from '../locks/lease-codec.js'
import type { DirectUse } from './direct-connection.js'
import type { DirectClient } from './driver.js'
import { type Change, changesIn } from './wakes.js'

export interface ListenerOptions {
  readonly channel: string
  /** This process's id as a sender. Its own hints are ignored, because its subscribers already have them. */
  readonly self: string
  /** Receives the changes, or undefined if it is unknown what has changed. */
  readonly heard: (changes?: readonly Change[]) => void
  readonly handed: (lease: Handed) => void
}

const HANDED = 'handed '

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

  ready(isFirst: boolean): void {
    if (!isFirst) this.#options.heard()
  }

  broken(): void {}
}

/** Any role may send anything to the channel. A payload that is not a lease counts as a hint of unknown changes. */
function leaseIn(text: string): Handed | undefined {
  try {
    return (JSON.parse(text) as Handed | null) ?? undefined
  } catch {
    return undefined
  }
}
