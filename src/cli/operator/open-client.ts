/**
 * The client that commands use. With `--url` it talks to a service over the network; with `--store` it calls the same API
 * in this process, on the store itself. So both have the same checks, answers and errors.
 */
import type { Belfry } from '../../belfry.js'
import { type BelfryClient, createClient } from '../../client/index.js'
import type { Target } from '../settings/operator-settings.js'
import { localCaller } from './local-caller.js'

export interface OpenClient {
  readonly client: BelfryClient
  close(): Promise<void>
}

/** Fails before the command runs if the store cannot be opened. Then closes its connections, which keep the process alive. */
async function checkStore(belfry: Belfry): Promise<void> {
  try {
    await belfry.now()
  } catch (error) {
    await belfry.stop({ grace: 0 }).catch(() => {})
    throw error
  }
}

export async function openClient(target: Target): Promise<OpenClient> {
  if ('store' in target) return clientOfStore(target)
  const { url, token } = target
  return {
    client: createClient({ url, ...(token === undefined ? {} : { token }) }),
    close: async () => {},
  }
}

/** Larger limits than those of a service, because the requests do not cross a network. */
const LIMITS = { bodyBytes: 2 ** 28, batch: 100_000, requestsPerSecond: 1_000_000, cpuMsPerSecond: 1_000_000 }

async function clientOfStore({ store: where, schema }: Extract<Target, { store: string }>): Promise<OpenClient> {
  const [{ createBelfry }, { createServer }, { storeLocation }, { quietSqlite }, { silentLogger }] = await Promise.all([
    import('../../belfry.js'),
    import('../../server/index.js'),
    import('../settings/open-store.js'),
    import('../settings/quiet-sqlite.js'),
    import('../../core/logger.js'),
  ])
  quietSqlite()
  const location = storeLocation({ store: where, ...(schema === undefined ? {} : { schema }) })
  location.mustExist()
  // This instance is never started, so it records no ticks and runs no jobs.
  const belfry = createBelfry({ store: await location.open(), roles: [], logger: silentLogger })
  await checkStore(belfry)
  const caller = localCaller()
  const server = createServer(belfry, { authorise: async () => caller, limits: LIMITS, logger: silentLogger })
  return {
    client: createClient({ url: 'http://localhost', fetch: (request) => server.fetch(request) }),
    async close() {
      await server.close()
      await belfry.stop({ grace: 0 })
    },
  }
}
