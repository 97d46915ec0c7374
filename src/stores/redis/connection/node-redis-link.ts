/** A client of `@redis/client`. */
import type { Clock } from '../../../core/clock.js'
import { inTime } from '../../../core/connection/in-time.js'
import { hearErrors } from './client-errors.js'
import type { Link, NodeRedis } from './driver.js'

/** After so many silences a given client is doubted: it may only be slow, or this process was stopped. Ours reconnects at once. */
export const PATIENCE = 2

/** A server may take a connection and say nothing. */
export const CONNECT_MS = 5_000

export function nodeRedisLink(client: NodeRedis, owned: boolean, clock: Clock): Link {
  let listenAgain = async () => {}
  let [connecting, closed] = [false, false]
  let current = client

  /** Only a connection of our own is given up: others may be waiting for theirs. */
  async function connectAgain() {
    if (connecting || !current.isOpen || current.isReady === false) return
    connecting = true
    try {
      if (owned) await reconnect()
      else await replace()
      await listenAgain()
    } catch {
      // It was closed meanwhile.
    } finally {
      connecting = false
    }
  }

  /** Again and again: one that was destroyed would never come back by itself. */
  async function reconnect() {
    for (let connected = false; !connected && !closed; ) {
      if (client.isOpen) client.destroy()
      connected = await inTime(clock, CONNECT_MS, client.connect()).then(
        () => true,
        () => false,
      )
    }
  }

  /** A given client stays as it is, because the app may use it, too. The store goes on with a duplicate. */
  async function replace() {
    const fresh = client.duplicate()
    hearErrors(fresh)
    await inTime(clock, CONNECT_MS, fresh.connect()).catch((error: unknown) => {
      fresh.destroy()
      throw error
    })
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
      let [listener, ended]: [NodeRedis | undefined, boolean] = [undefined, false]
      listenAgain = async () => {
        const fresh = client.duplicate()
        hearErrors(fresh)
        await inTime(clock, CONNECT_MS, listenWith(fresh, channel, heard)).catch((error: unknown) => {
          fresh.destroy()
          throw error
        })
        fresh.unref?.()
        fresh.on('ready', gap)
        if (ended) return void fresh.destroy()
        if (listener !== undefined) gap()
        listener?.destroy()
        listener = fresh
      }
      await listenAgain()
      return {
        renew: () => void listenAgain().catch(() => {}),
        end() {
          ended = true
          listener?.destroy()
        },
      }
    },
    close() {
      closed = true
      if ((owned || current !== client) && current.isOpen) current.destroy()
    },
  }
}

async function listenWith(client: NodeRedis, channel: string, heard: (message: string) => void): Promise<void> {
  await client.connect()
  await client.subscribe(channel, heard)
}
