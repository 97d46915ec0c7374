/** The server mounted in Express, Fastify and Nest, behind their body parsers, at several paths. */
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type BelfryClient, createClient } from '../../src/client/index.js'
import { type Belfry, createBelfry, silentLogger } from '../../src/index.js'
import { createServer, type NodeHandler, toNodeHandler } from '../../src/server/index.js'
import { log } from '../../src/sinks/log.js'
import { memory } from '../../src/stores/memory/index.js'

const load = createRequire(import.meta.url)
const LOOPBACK = '127.0.0.1'

let belfry: Belfry
const ends: (() => Promise<unknown>)[] = []

beforeEach(async () => {
  belfry = createBelfry({ store: memory(), logger: silentLogger, sinks: { log: log({ logger: silentLogger }) } })
  await belfry.start()
})

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  await belfry.stop()
})

function handler(options: { readonly basePath?: string } = {}): NodeHandler {
  const server = createServer(belfry, { logger: silentLogger, ...options })
  ends.push(() => server.close())
  return toNodeHandler(server)
}

async function listen(listener: RequestListener): Promise<string> {
  const http = createHttpServer(listener)
  await new Promise<void>((resolve) => http.listen(0, LOOPBACK, resolve))
  ends.push(() => {
    http.closeAllConnections()
    return new Promise((resolve) => http.close(resolve))
  })
  return `http://${LOOPBACK}:${(http.address() as AddressInfo).port}`
}

interface ExpressApp {
  (...args: Parameters<RequestListener>): void
  use(...handlers: unknown[]): unknown
}

/** Express with its body parsers, each of which reads the bodies of its types. */
function expressApp(): ExpressApp {
  const express = load('express') as {
    (): ExpressApp
    json(): unknown
    text(of: object): unknown
  }
  const app = express()
  app.use(express.json())
  app.use(express.text({ type: 'text/*' }))
  return app
}

interface FastifyApp {
  all(path: string, handler: unknown): unknown
  register(plugin: (scope: FastifyApp) => Promise<void>, options: object): unknown
  addContentTypeParser(type: string, parser: (...args: [unknown, unknown, (error: null) => void]) => void): unknown
  listen(options: object): Promise<string>
  close(): Promise<void>
}

async function fastify(setUp: (app: FastifyApp) => void): Promise<string> {
  const app = (load('fastify') as () => FastifyApp)()
  setUp(app)
  ends.push(() => app.close())
  return app.listen({ host: LOOPBACK, port: 0 })
}

async function nest(setUp: (app: { use(...handlers: unknown[]): unknown }) => void): Promise<string> {
  load('reflect-metadata')
  const { NestFactory } = load('@nestjs/core') as {
    NestFactory: {
      create(
        module: unknown,
        options: object,
      ): Promise<{
        use(...handlers: unknown[]): unknown
        listen(port: number, host: string): Promise<unknown>
        getUrl(): Promise<string>
        close(): Promise<void>
      }>
    }
  }
  const { Module } = load('@nestjs/common') as { Module: (of: object) => (target: unknown) => void }
  class AppModule {}
  Module({})(AppModule)
  const app = await NestFactory.create(AppModule, { logger: false })
  setUp(app)
  await app.listen(0, LOOPBACK)
  ends.push(() => app.close())
  return app.getUrl()
}

const MOUNTS: Readonly<Record<string, () => Promise<string>>> = {
  'Express at a path': async () => {
    const app = expressApp()
    app.use('/belfry', handler())
    return `${await listen(app)}/belfry`
  },
  'Express in a router of a router': async () => {
    const app = expressApp()
    const { Router } = load('express') as { Router: () => ExpressApp }
    const router = Router()
    router.use('/cron', handler())
    app.use('/internal', router)
    return `${await listen(app)}/internal/cron`
  },
  'Express at its root, with a base path': async () => {
    const app = expressApp()
    app.use(handler({ basePath: '/api' }))
    return `${await listen(app)}/api`
  },
  'Fastify with a wildcard': async () => `${await fastify((app) => app.all('/belfry/*', handler()))}/belfry`,
  'Fastify in a plugin with a prefix': async () => {
    const plugin = async (scope: FastifyApp) => void scope.all('/*', handler())
    return `${await fastify((app) => app.register(plugin, { prefix: '/in/side' }))}/in/side`
  },
  Nest: async () => `${await nest((app) => app.use('/belfry', handler()))}/belfry`,
  'node:http': async () => listen(handler()),
}

describe.each(Object.entries(MOUNTS))('in %s', (_, mount) => {
  let url: string
  let client: BelfryClient

  beforeEach(async () => {
    url = await mount()
    client = createClient({ url })
  })

  it('answers requests with and without a body', async () => {
    const made = await client.schedules.put('a/b', { every: '1h', to: 'log', payload: { text: 'ü' } })
    expect(await client.schedules.get('a/b')).toEqual(made)
    expect((await client.schedules.list()).data).toHaveLength(1)
    const { run } = await client.schedules.trigger('a/b', { wait: '10s' })
    expect(run).toMatchObject({ state: 'succeeded', payload: { text: 'ü' } })
    await client.schedules.remove('a/b')
    expect(await client.schedules.get('a/b')).toBeUndefined()
    await expect(client.schedules.put('x', { cron: '61 * * * *', to: 'log' })).rejects.toMatchObject({
      problem: { errors: [{ pointer: '/cron' }] },
    })
  })

  it('names paths as its callers see them', async () => {
    const created = await fetch(`${url}/v1/schedules`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'made', every: '1h', to: 'log' }),
    })
    expect(created.headers.get('location')).toBe(`${new URL(url).pathname.replace(/\/$/, '')}/v1/schedules/made`)
    const { servers } = (await (await fetch(`${url}/openapi.json`)).json()) as { servers: { url: string }[] }
    expect(servers).toEqual([{ url: new URL(url).pathname }])
  })

  it('streams events, and notices when the client leaves', async () => {
    const leave = new AbortController()
    const seen: string[] = []
    for await (const { type } of client.events({ signal: leave.signal })) {
      seen.push(type)
      leave.abort()
    }
    expect(seen).toEqual(['ready'])
  })
})

describe('lines of an import', () => {
  const lines = [1, 2, 3].map((n) => ({ id: `i/${n}`, every: '1h', to: 'log' }))

  it('arrive through Express, whose parsers leave them alone', async () => {
    const app = expressApp()
    app.use('/belfry', handler())
    const client = createClient({ url: `${await listen(app)}/belfry` })
    expect(await client.schedules.import(lines)).toMatchObject({ created: 3 })
  })

  it('arrive through Fastify in a scope that passes bodies on', async () => {
    const plugin = async (scope: FastifyApp) => {
      scope.addContentTypeParser('application/x-ndjson', (_, __, done) => done(null))
      scope.all('/*', handler())
    }
    const url = await fastify((app) => app.register(plugin, { prefix: '/belfry' }))
    const client = createClient({ url: `${url}/belfry` })
    expect(await client.schedules.import(lines)).toMatchObject({ created: 3 })
  })
})

describe('a wrong mount', () => {
  const hintAt = async (url: string) => ((await (await fetch(url)).json()) as { hint: string }).hint

  it('is answered with a hint', async () => {
    const strict = createServer(belfry, { logger: silentLogger, basePath: '/belfry' })
    const plain = createServer(belfry, { logger: silentLogger })
    ends.push(
      () => strict.close(),
      () => plain.close(),
    )
    const ask = async (server: typeof plain, path: string) => {
      const answer = await server.fetch(new Request(`http://localhost${path}`))
      expect(answer.status).toBe(404)
      return ((await answer.json()) as { hint: string }).hint
    }
    expect(await ask(plain, '/api/cron/v1/schedules')).toBe(
      'the routes are below /v1, not below /api/cron/v1: if the server is mounted there, set basePath to "/api/cron"',
    )
    expect(await ask(strict, '/v1/schedules')).toMatch(
      /below \/belfry\/v1 \(basePath\), and the path begins with \/: mount/,
    )
    expect(await ask(plain, '/')).toBe('the routes are below /v1, and /openapi.json describes them')
    expect(await ask(strict, '/belfryx/v1/stats')).toMatch(/the path begins with \/belfryx/)
  })

  it('does not take a base path from a path that clients choose', async () => {
    const app = expressApp()
    app.use('/:tenant/belfry', handler())
    const url = await listen(app)
    expect(await hintAt(`${url}/a;b/belfry/v1/stats`)).toMatch(/the routes are below \/v1/)
  })

  it('behind a middleware that swallows bodies says so', async () => {
    const app = expressApp()
    app.use((request: { body?: unknown }, _: unknown, next: () => void) => {
      delete request.body
      next()
    })
    app.use('/belfry', handler())
    const client = createClient({ url: `${await listen(app)}/belfry` })
    await expect(client.schedules.put('a', { every: '1h', to: 'log' })).rejects.toMatchObject({
      status: 500,
      problem: { hint: 'mount Belfry before that middleware' },
    })
  })
})
