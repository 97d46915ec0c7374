/**
 * Servers that tests share. Nothing is started until the first test asks for it, over a loopback port that every test
 * process is told; all are stopped when the tests are over.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type RunningServer, startPostgres } from './postgres.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where to ask for a server by its name. */
    servers: string
  }
}

const STARTERS: Readonly<Record<string, () => Promise<RunningServer>>> = { postgres: startPostgres }

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const running = new Map<string, Promise<RunningServer>>()
  const desk = createServer(async (request, response) => {
    const name = request.url?.slice(1) ?? ''
    try {
      const start = STARTERS[name]
      if (start === undefined) throw new Error(`there is no server called ${name}`)
      const server = running.get(name) ?? start()
      running.set(name, server)
      response.end((await server).url)
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
