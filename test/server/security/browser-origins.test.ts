/** What pages of other origins can do in a real browser. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { type OpenBrowser, openBrowser } from '../../servers/chromium.js'
import { type RawService, rawService } from './raw-service.js'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

interface Site {
  readonly origin: string
  /** What the page's script posted to its own server. */
  readonly result: Promise<unknown>
}

/** A site of one page. `script` is an async function's body; its value is the result. */
async function site(script: (site: string) => string): Promise<Site> {
  let report: (result: unknown) => void = () => {}
  const result = new Promise<unknown>((resolve) => {
    report = resolve
  })
  const server: Server = createServer((request, response) => {
    if (request.method !== 'POST') {
      const text = script(`http://localhost:${portOf(server)}`)
      response.setHeader('content-type', 'text/html')
      response.end(
        `<script>(async () => { ${text} })().catch((error) => String(error)).then((it) =>
           fetch('/', { method: 'POST', body: JSON.stringify(it) }))</script>`,
      )
      return
    }
    let body = ''
    request.on('data', (part) => {
      body += String(part)
    })
    request.on('end', () => {
      response.end()
      report(JSON.parse(body))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  return { origin: `http://localhost:${portOf(server)}`, result }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

async function started(options: Parameters<typeof rawService>[0]): Promise<RawService> {
  const service = await rawService(options)
  closing.push(() => service.close())
  return service
}

async function visit({ origin, result }: Site): Promise<unknown> {
  const browser: OpenBrowser = openBrowser(`${origin}/`)
  closing.push(() => browser.close())
  return result
}

/** Tries each request, and resolves to its status, or to `refused` if the browser shows the page no answer. */
const TRY = `
  const attempt = (path, init = {}) =>
    fetch(base + path, { credentials: 'include', ...init }).then(({ status }) => status, () => 'refused')
  const json = (method, body) => ({ method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const events = () => new Promise((resolve) => {
    const source = new EventSource(base + '/v1/events', { withCredentials: true })
    source.addEventListener('ready', () => { source.close(); resolve('ready') })
    source.onerror = () => { source.close(); resolve('refused') }
  })`

/** Logs in, reads, makes a change, and opens the stream of events. */
const SESSION = `
  return [
    await attempt('/v1/session', json('POST', { token })),
    await attempt('/v1/session'),
    await attempt('/v1/schedules/a', json('PUT', { every: '1h', job: 'x' })),
    await events(),
  ]`

it('a page of an origin in `origins` logs in, reads, makes changes and gets events', { timeout: 60_000 }, async () => {
  let base = ''
  let token = ''
  const page = await site(() => `const base = '${base}', token = '${token}'; ${TRY}; ${SESSION}`)
  const service = await started({ origins: [page.origin] })
  base = `http://localhost:${service.port}`
  token = service.token
  expect(await visit(page)).toEqual([204, 200, 201, 'ready'])
})

it('a page of any other origin does not', { timeout: 60_000 }, async () => {
  let base = ''
  let token = ''
  const page = await site(() => `const base = '${base}', token = '${token}'; ${TRY}; ${SESSION}`)
  const service = await started({ origins: ['http://localhost:1'] })
  base = `http://localhost:${service.port}`
  token = service.token
  expect(await visit(page)).toEqual(['refused', 'refused', 'refused', 'refused'])
  expect(await service.belfry.schedules.get('a')).toBeUndefined()
})

it('without login, a page of another origin cannot even cause reads', { timeout: 60_000 }, async () => {
  let base = ''
  const page = await site(
    () => `const base = '${base}'; ${TRY};
      const simple = { mode: 'no-cors', credentials: 'omit' }
      await attempt('/v1/schedules', simple)
      await attempt('/v1/schedules:export', simple)
      await new Promise((resolve) => { const it = new Image(); it.onerror = it.onload = resolve; it.src = base + '/v1/runs' })
      return events()`,
  )
  const service = await started({ open: true })
  base = `http://localhost:${service.port}`
  const reads = () =>
    service.belfry.metrics.histograms().filter(({ labels }) => /^(schedules|runs)\.list$/.test(labels.operation ?? ''))
  expect(await visit(page)).toBe('refused')
  expect(reads().map(({ value }) => value.count)).toEqual([])
})
