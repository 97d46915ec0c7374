/** Sends the beats and lease renewals of the Redis store from the beat thread, over a client of its own. */

import { systemClock } from '../../../core/clock.js'
import type { BeatStore } from '../../../core/instances/beat-store.js'
import { shardKeys } from '../cluster/shards.js'
import { beatInstance } from '../instances/beat.js'
import { renewLeases } from '../locks/renew.js'
import { linkTo } from './driver.js'
import { clientLike } from './load-client.js'
import { openLink } from './open-link.js'
import type { BeatStoreOptions } from './reopen.js'
import { Server } from './server.js'

/** The beat thread calls this with the options that `reopen` returned. */
export function openBeatStore(options: unknown): BeatStore {
  const { client, prefix, shards, waitReplicas, timeoutMs } = options as BeatStoreOptions
  const clock = systemClock
  const link = linkTo(clientLike(client), true, clock)
  const server = new Server({ link, prefix, clock, timeoutMs, waitReplicas, clockKind: 'server' })
  server.useShards(shardKeys(prefix, shards))
  let opened: Promise<void> | undefined
  const open = () => {
    opened ??= openLink(link, clock, server.limitMs, prefix).catch((error: unknown) => {
      opened = undefined
      throw error
    })
    return opened
  }
  return {
    open,
    beat: async (request) => {
      await open()
      return beatInstance(server, request)
    },
    renew: async (requests) => {
      await open()
      return renewLeases(server, requests)
    },
    async close() {
      server.close()
      link.close()
    },
  }
}
