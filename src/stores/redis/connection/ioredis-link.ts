/** A client or a cluster of ioredis. */

import { hearErrors } from './client-errors.js'
import type { IoRedis, Link } from './driver.js'
import { PATIENCE } from './node-redis-link.js'

export function ioredisLink(client: IoRedis, owned: boolean): Link {
  let [replacing, closed] = [false, false]
  let current = client
  let ear: IoRedis | undefined

  /** A given client stays as it is, because the app may use it, too. The store goes on with a duplicate. */
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
    // ioredis keeps trying by itself.
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
      // When ioredis subscribes again by itself and is cut off once more, it throws where no caller can catch it.
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
        // One that is cut off is ready once more, later.
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

/** Each connection has a socket of its own. */
function keepNoProcess(client: IoRedis): void {
  client.stream?.unref?.()
  client.on('ready', () => client.stream?.unref?.())
}

/** A client that keeps no commands for later refuses them until then. */
async function untilReady(client: IoRedis): Promise<void> {
  if (client.status === 'wait') await client.connect()
  else if (client.status !== 'ready') {
    await new Promise((ready, failed) => {
      client.on('ready', ready)
      client.on('error', failed)
    })
  }
}
