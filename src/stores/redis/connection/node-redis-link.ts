/** Reaches the server over a client of `@redis/client`. */
import type { Clock } from '../../../core/clock.js'
import { inTime } from '../../../core/connection/in-time.js'
import { hearErrors } from './client-errors.js'
import type { Link, NodeRedis, Subscription } from './driver.js'
import { CONNECT_MS, connectedDuplicate, listening } from './duplicates.js'

/**
 * After how many timeouts in a row the store gives up the connection of a client that the user passed in: the server
 * may only be slow, or this process was suspended. The store's own client reconnects after the first.
 */
export const PATIENCE = 2

export function nodeRedisLink(client: NodeRedis, owned: boolean, clock: Clock): Link {
  let subscription: Subscription | undefined
  let [connecting, closed] = [false, false]
  let current = client

  /**
   * Gets a new connection. Only the store's own client is closed: with a user's client, other code may wait for
   * answers.
   */
  async function connectAgain() {
    if (connecting || !current.isOpen || current.isReady === false) return
    connecting = true
    try {
      if (owned) await reconnect()
      else await replace()
      await subscription?.renew()
    } catch {
      // No connection could be made. The next timeout tries again.
    } finally {
      connecting = false
    }
  }

  /** Retries until it is connected, because a destroyed client does not reconnect by itself. */
  async function reconnect() {
    for (let connected = false; !connected && !closed; ) {
      if (client.isOpen) client.destroy()
      connected = await inTime(clock, CONNECT_MS, client.connect()).then(
        () => true,
        () => false,
      )
    }
  }

  /** Continues with a duplicate. The client that the user passed in stays open, because the app may use it, too. */
  async function replace() {
    const fresh = await connectedDuplicate(client, clock)
    if (current !== client) current.destroy()
    current = fresh
    fresh.unref?.()
    if (closed) fresh.destroy()
  }

  return {
    isCluster: false,
    unref() {
      if (owned) client.unref?.()
    },
    keepsOrder: true,
    heard: hearErrors(client),
    abandon() {
      if (client.isOpen) client.destroy()
    },
    doubt(_, silences) {
      if (owned || silences >= PATIENCE) void connectAgain()
    },
    async open() {
      if (!client.isOpen) await client.connect()
    },
    send: (_, args) => current.sendCommand(args),
    sendBoth: (_, first, second) => Promise.all([current.sendCommand(first), current.sendCommand(second)]),
    async listen(channel, heard, gap) {
      const open = async () => {
        const fresh = await connectedDuplicate(client, clock, (own) => own.subscribe(channel, heard))
        fresh.unref?.()
        fresh.on('ready', gap)
        return fresh
      }
      subscription = await listening(open, gap)
      return subscription
    },
    close() {
      closed = true
      if ((owned || current !== client) && current.isOpen) current.destroy()
    },
  }
}
