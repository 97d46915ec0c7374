import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { getRequestListener } from '@hono/node-server'
import { expect, it } from 'vitest'
import { createBelfry, silentLogger } from '../../src/index.js'
import { tokenAuthorise } from '../../src/server/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { curlProgram } from '../servers/curl.js'
import { checkedServer } from './checked-server.js'

const DOCS = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
const EXAMPLES = [...DOCS.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) => text)

it('has curl examples that work in the order of the page', async () => {
  expect(EXAMPLES.length).toBeGreaterThan(5)
  const belfry = createBelfry({ store: memory(), logger: silentLogger })
  belfry.job('send-digest', { run: ({ payload }) => payload })
  await belfry.start()
  const server = await checkedServer(belfry)
  const http = createHttpServer(getRequestListener((request) => server.fetch(request)))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  const env = { ...process.env, PATH: `${dirname(curlProgram())}:${process.env.PATH ?? ''}` }
  const outputs: string[] = []
  for (const example of EXAMPLES) {
    const script = example
      .replaceAll('127.0.0.1:7420', `127.0.0.1:${port}`)
      .replaceAll('curl ', 'curl -sS --fail-with-body ')
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env })
    outputs.push(stdout)
  }
  const all = outputs.join('\n')
  expect(all).toContain('"description":"At 09:00')
  expect(all).toContain('"state":"succeeded","job":"send-digest"')
  expect(all).toContain('"change":"create"')
  expect(all).toContain('"created":2')
  expect(all).toContain('{"id":"user/1"')
  expect(all).toContain('"holder":"me-1"')
  expect(all).toContain('event: ready')
  await server.close()
  http.closeAllConnections()
  await new Promise((resolve) => http.close(resolve))
  await belfry.stop()
})

it('lists exactly the routes of the service, each with its role', async () => {
  const belfry = createBelfry({ store: memory(), logger: silentLogger })
  const { document } = await checkedServer(belfry, { authorise: tokenAuthorise(belfry.records) })
  const routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { 'x-role': role = '' }]) => `${method.toUpperCase()} ${path} ${role}`.trim()),
  )
  const rows = [...DOCS.matchAll(/^\| `([A-Z]+ [^`]+)` +\| (\w*)/gm)].map(([, route, role]) =>
    `${route} ${role}`.trim(),
  )
  expect(rows.sort()).toEqual(routes.sort())
})

it('names only existing paths', async () => {
  const belfry = createBelfry({ store: memory(), logger: silentLogger })
  const { document } = await checkedServer(belfry)
  const named = [...DOCS.matchAll(/`(\/(?:v1\/)?[a-z]+(?:\.json|\/\{id\})?)`/g)].map(([, path = '']) => path)
  expect(named.length).toBeGreaterThan(5)
  for (const path of named.filter((each) => !['/cancel', '/retry', '/belfry'].includes(each))) {
    expect(Object.keys(document.paths)).toContain(path)
  }
})
