/** A service on the memory store with tokens, for tests about a particular caller. */
import { type Belfry, createBelfry } from '../../../src/belfry.js'
import { silentLogger } from '../../../src/core/logger.js'
import { createServer } from '../../../src/server/index.js'
import { type AuthoriseOptions, tokenAuthorise } from '../../../src/server/security/authorise.js'
import { type NewToken, Tokens } from '../../../src/server/security/tokens.js'
import { memory } from '../../../src/stores/memory/index.js'

export interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly address?: string
  readonly secure?: boolean
  /** The host in the URL. */
  readonly host?: string
}

export interface SecuredService {
  readonly belfry: Belfry
  readonly tokens: Tokens
  ask(path: string, asked?: Asked): Promise<Response>
  token(token: NewToken): Promise<string>
  close(): Promise<void>
}

export interface SecuredOptions extends AuthoriseOptions {
  /** Default: an instance on a memory store that runs nothing. */
  readonly belfry?: Belfry
}

export async function securedService({ belfry: given, ...options }: SecuredOptions = {}): Promise<SecuredService> {
  const belfry = given ?? createBelfry({ store: memory(), roles: [], logger: silentLogger })
  await belfry.start()
  const server = createServer(belfry, { authorise: tokenAuthorise(belfry.records, options), logger: silentLogger })
  const tokens = new Tokens(belfry.records)
  return {
    belfry,
    tokens,
    async ask(
      path,
      { method = 'GET', headers = {}, body, address = '192.0.2.1', secure = false, host = 'belfry.test' } = {},
    ) {
      const request = new Request(`http://${host}${path}`, {
        method,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      return server.fetch(request, { remoteAddress: address, secure })
    },
    token: async (token) => (await tokens.create(token)).token,
    async close() {
      await server.close()
      await belfry.stop()
    },
  }
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}

/** The status and the problem code of an answer: `401 UNAUTHENTICATED`. */
export async function outcome(response: Response): Promise<string> {
  if (response.ok) return String(response.status)
  const { code } = (await response.json()) as { code: string }
  return `${response.status} ${code}`
}
