/** The API of `belfry dev`: on this machine only, without tokens. */
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import { type Logger, silentLogger } from '../../core/logger.js'
import { createServer } from '../../server/index.js'
import { tokenAuthorise } from '../../server/security/authorise.js'
import { clientAddress } from '../serve/client-address.js'
import { HttpListener } from '../serve/http-listener.js'
import { DEFAULT_PORT } from '../settings/serve-settings.js'

export interface DemoApi {
  readonly url: string
  close(): Promise<void>
}

const HOST = '127.0.0.1'
const PATIENCE_MS = 500

/** A request and its answer. */
export interface RequestNote {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly ms: number
}

export async function serveDemo(belfry: Belfry, tell: (request: RequestNote) => void): Promise<DemoApi> {
  const authorise = tokenAuthorise(belfry.records, { open: true })
  // The server logs one info line for each request.
  const logger: Logger = { ...silentLogger, info: (fields) => tell(fields as RequestNote) }
  const server = createServer(belfry, { authorise, logger })
  const newListener = () => new HttpListener({ fetch: server.fetch, addressOf: clientAddress([]) })
  let listener = newListener()
  const { port } = await listener.listen(HOST, DEFAULT_PORT).catch((error: unknown) => {
    if (!(error instanceof BelfryError)) throw error
    // The default port is in use: take any free one.
    listener = newListener()
    return listener.listen(HOST, 0)
  })
  return {
    url: `http://${HOST}:${port}`,
    async close() {
      await Promise.all([listener.close(PATIENCE_MS), server.close()])
      await server.close()
    },
  }
}
