/**
 * Hints from other processes, by LISTEN. While the connection is down, polling finds all changes. When it is open again,
 * anything may have changed meanwhile, so subscribers are told of everything.
 *
 * Two kinds of payloads arrive:
 *
 *     4f1c… runs leases           sender and changes; the sender is `-` where a transaction of the app's sent it
 *     handed {"name":"a", …}      a lease that was given to its next waiter, sent with the commit that gave it
 */
import type { Handed } from '../locks/lease-codec.js'
import type { DirectUse } from './direct-connection.js'
import type { DirectClient } from './driver.js'
import { type Change, changesIn } from './wakes.js'

export interface ListenerOptions {
  readonly channel: string
  /** The sender whose hints are ignored: this process has told its own subscribers already. */
  readonly self: string
  /** Gets the changes, or nothing when it is not known what has changed. */
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

/** Any role may send anything to the channel: a payload that is no lease counts as a hint without changes. */
function leaseIn(text: string): Handed | undefined {
  try {
    return (JSON.parse(text) as Handed | null) ?? undefined
  } catch {
    return undefined
  }
}
