/** A client of `@redis/client`. */
import type { Link, NodeRedis } from './clients.js'
import { hearErrors } from './hear-errors.js'

/** A client of ours is connected anew at once. One that was brought may only have been slow, or this process was stopped. */
export const PATIENCE = 2

export function nodeRedisLink(client: NodeRedis, owned: boolean): Link {
  let listenAgain = async () => {}
  let [connecting, closed] = [false, false]
  let current = client

  /** Only a connection of our own is given up: others may be waiting for theirs. */
  async function connectAgain() {
    if (connecting || !current.isOpen || current.isReady === false) return
    connecting = true
    try {
      if (owned) {
        client.destroy()
        await client.connect()
      } else await replace()
      await listenAgain()
    } catch {
      // It was closed meanwhile.
    } finally {
      connecting = false
    }
  }

  /** A client that was brought stays as it is, for whoever else uses it. The store goes on with one like it. */
  async function replace() {
    const fresh = client.duplicate()
    hearErrors(fresh)
    await fresh.connect()
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
        await fresh.connect()
        await fresh.subscribe(channel, heard)
        fresh.unref?.()
        fresh.on('ready', gap)
        if (ended) return void fresh.destroy()
        if (listener !== undefined) gap()
        listener?.destroy()
        listener = fresh
      }
      await listenAgain()
      return () => {
        ended = true
        listener?.destroy()
      }
    },
    close() {
      closed = true
      if ((owned || current !== client) && current.isOpen) current.destroy()
    },
  }
}
