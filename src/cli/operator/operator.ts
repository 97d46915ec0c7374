/**
 * The seam between commands and where they work. All of them speak to a client of the HTTP API. With `--url` it goes over
 * the network; with `--store` the same API is mounted in this process, on the store itself. So both ways have the same
 * words, the same checks and the same answers.
 */
import type { Belfry } from '../../belfry.js'
import { type BelfryClient, createClient } from '../../client/index.js'
import type { Way } from '../settings/operator-settings.js'
import { commandLine } from './command-line.js'

export interface Operator {
  readonly client: BelfryClient
  /** For people: it never holds a password. */
  readonly place: string
  close(): Promise<void>
}

/** A store that cannot be opened is said before anything else is; its connections would keep the process from ending. */
async function opened(belfry: Belfry): Promise<void> {
  try {
    await belfry.now()
  } catch (error) {
    await belfry.stop({ grace: 0 }).catch(() => {})
    throw error
  }
}

export async function openOperator(way: Way): Promise<Operator> {
  if ('store' in way) return onStore(way)
  const { url, token } = way
  return {
    client: createClient({ url, ...(token === undefined ? {} : { token }) }),
    place: new URL(url).host,
    close: async () => {},
  }
}

/** What is too much for one request over the network is not too much here. */
const LIMITS = { bodyBytes: 2 ** 28, batch: 100_000, requestsPerSecond: 1_000_000 }

async function onStore({ store: where, schema }: Extract<Way, { store: string }>): Promise<Operator> {
  const [{ createBelfry }, { createServer }, { storePlace }, { quietSqlite }, { silentLogger }] = await Promise.all([
    import('../../belfry.js'),
    import('../../server/index.js'),
    import('../settings/open-store.js'),
    import('../settings/quiet-sqlite.js'),
    import('../../core/logger.js'),
  ])
  quietSqlite()
  const place = storePlace({ store: where, ...(schema === undefined ? {} : { schema }) })
  place.mustExist()
  // It looks and changes, and takes no part: it is not started.
  const belfry = createBelfry({ store: await place.open(), roles: [], logger: silentLogger })
  await opened(belfry)
  const caller = commandLine()
  const server = createServer(belfry, { authorise: async () => caller, limits: LIMITS, logger: silentLogger })
  return {
    client: createClient({ url: 'http://localhost', fetch: (request) => server.fetch(request) }),
    place: place.name,
    async close() {
      await server.close()
      await belfry.stop({ grace: 0 })
    },
  }
}
