/** Reaches the servers over a client or a cluster of ioredis. */

import { hearErrors } from './client-errors.js'
import type { IoRedis, Link } from './driver.js'
import { PATIENCE } from './node-redis-link.js'

export function ioredisLink(client: IoRedis, owned: boolean): Link {
  let [replacing, closed] = [false, false]
  let current = client
  let ear: IoRedis | undefined

  /** Continues with a duplicate. The client that the user passed in stays open, because the app may use it, too. */
  async function replace() {
    if (replacing) return
    replacing = true
    const fresh = client.duplicate()
    hearErrors(fresh)
    try {
      await untilReady(fresh)
      if (current !== client) current.disconnect()
      current = fresh
      keepNoProcess(fresh)
    } catch {
      fresh.disconnect()
    }
    replacing = false
    if (closed) fresh.disconnect()
  }

  return {
    isCluster: client.isCluster,
    unref() {
      if (owned) keepNoProcess(client)
    },
    keepsOrder: !client.isCluster,
    heard: hearErrors(client),
    // ioredis retries by itself, so there is nothing to give up.
    abandon: () => {},
    doubt(_, silences) {
      if (silences < PATIENCE && !owned) return
      if (client.isCluster || current.status !== 'ready') return
      if (owned) client.disconnect(true)
      else void replace()
      if (ear?.status === 'ready') ear.disconnect(true)
    },
    async open() {
      if (client.status === 'wait') await client.connect()
    },
    send: (_, [command = '', ...args]) => current.call(command, args),
    sendBoth: (_, [one = '', ...first], [other = '', ...second]) =>
      Promise.all([current.call(one, first), current.call(other, second)]),
    async listen(channel, heard, gap) {
      // `autoResubscribe` is off: if the connection breaks while ioredis resubscribes by itself, it throws where no
      // caller can catch the error.
      const listener = client.isCluster ? client.duplicate() : client.duplicate({ autoResubscribe: false })
      hearErrors(listener)
      listener.on('message', (_, message) => heard(message))
      try {
        await untilReady(listener)
        await listener.subscribe(channel)
        keepNoProcess(listener)
      } catch (error) {
        listener.disconnect()
        throw error
      }
      ear = listener
      listener.on('ready', () => {
        if (client.isCluster) gap()
        // If the connection breaks during this call, the next `ready` event subscribes again.
        else void listener.subscribe(channel).then(gap, () => {})
      })
      return {
        async renew() {
          if (listener.status === 'ready') listener.disconnect(true)
        },
        end: () => listener.disconnect(),
      }
    },
    close() {
      closed = true
      if (owned || current !== client) current.disconnect()
    },
  }
}

/**
 * Lets the process end while the client is connected. Every reconnection makes a new socket, so each is unreferenced.
 */
function keepNoProcess(client: IoRedis): void {
  client.stream?.unref?.()
  client.on('ready', () => client.stream?.unref?.())
}

/** Waits until the client is connected. Without an offline queue, ioredis refuses commands until then. */
async function untilReady(client: IoRedis): Promise<void> {
  if (client.status === 'wait') await client.connect()
  else if (client.status !== 'ready') {
    await new Promise((ready, failed) => {
      client.on('ready', ready)
      client.on('error', failed)
    })
  }
}
