/**
 * Servers that tests share. Nothing is started until the first test asks for it, over a loopback port that every test
 * process is told; all are stopped when the tests are over.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import type { ServerName } from './ask.js'
import { startPgBouncer } from './pgbouncer.js'
import { type RunningServer, startPostgres } from './postgres.js'
import { startRedis, startRedisCluster } from './redis.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where to ask for a server by its name. */
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
  const desk = createServer(async (request, response) => {
    const name = request.url?.slice(1) ?? ''
    // Whoever asks again after a busy while would find a connection that was kept for him just closed.
    response.setHeader('connection', 'close')
    try {
      if (!isServerName(name)) throw new Error(`there is no server called ${name}`)
      response.end((await ask(name)).url)
    } catch (error) {
      response.statusCode = 500
      response.end(error instanceof Error ? error.message : String(error))
    }
  })
  desk.listen(0, '127.0.0.1')
  await once(desk, 'listening')
  project.provide('servers', `http://127.0.0.1:${(desk.address() as AddressInfo).port}`)
  return async () => {
    desk.close()
    const servers = await Promise.allSettled(running.values())
    for (const server of servers) if (server.status === 'fulfilled') await server.value.stop()
  }
}

function isServerName(name: string): name is ServerName {
  return Object.hasOwn(STARTERS, name)
}
