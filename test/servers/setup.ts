/**
 * Servers that all tests share. A test process gets a server's URL over HTTP on a loopback port (`server-url.ts`). The
 * first request for a server starts it. All of them stop when the tests are over.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { startPgBouncer } from './pgbouncer.js'
import { type RunningServer, startPostgres } from './postgres.js'
import { startRedis, startRedisCluster } from './redis.js'
import type { ServerName } from './server-url.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The URL at which test processes ask for a server by name. */
    servers: string
  }
}

type Ask = (name: ServerName) => Promise<RunningServer>

const STARTERS: Readonly<Record<ServerName, (ask: Ask) => Promise<RunningServer>>> = {
  postgres: startPostgres,
  redis: startRedis,
  'redis-cluster': () => startRedisCluster(),
  pgbouncer: async (ask) => startPgBouncer((await ask('postgres')).url),
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const running = new Map<ServerName, Promise<RunningServer>>()
  const ask: Ask = (name) => {
    const server = running.get(name) ?? STARTERS[name](ask)
    running.set(name, server)
    return server
  }
  const registry = createServer(async (request, response) => {
    const name = request.url?.slice(1) ?? ''
    // A kept-alive connection may time out at the moment when a busy process uses it again.
    response.setHeader('connection', 'close')
    try {
      if (!isServerName(name)) throw new Error(`there is no server called ${name}`)
      response.end((await ask(name)).url)
    } catch (error) {
      response.statusCode = 500
      response.end(error instanceof Error ? error.message : String(error))
    }
  })
  registry.listen(0, '127.0.0.1')
  await once(registry, 'listening')
  project.provide('servers', `http://127.0.0.1:${(registry.address() as AddressInfo).port}`)
  return async () => {
    registry.close()
    const servers = await Promise.allSettled(running.values())
    for (const server of servers) if (server.status === 'fulfilled') await server.value.stop()
  }
}

function isServerName(name: string): name is ServerName {
  return Object.hasOwn(STARTERS, name)
}
