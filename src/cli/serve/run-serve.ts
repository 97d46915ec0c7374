/** `belfry serve`: starts Belfry, the server and the HTTP listener, and stops them gracefully. */
import { type Belfry, createBelfry } from '../../belfry.js'
import { failure } from '../../core/errors.js'
import type { RecordStore } from '../../core/store.js'
import { problem, problemResponse } from '../../server/http/problem.js'
import { content, toResponse } from '../../server/http/reply.js'
import { createServer, type RequestInfo } from '../../server/index.js'
import { tokenAuthorise } from '../../server/security/authorise.js'
import { Tokens } from '../../server/security/tokens.js'
import { METRICS_TYPE, metricsPage, metricsSource } from '../../server/shapes/metrics-page.js'
import { log as logSink } from '../../sinks/log.js'
import { openSinks } from '../settings/open-sinks.js'
import { type StoreLocation, storeLocation } from '../settings/open-store.js'
import { quietSqlite } from '../settings/quiet-sqlite.js'
import type { ServeSettings } from '../settings/serve-settings.js'
import { clientAddress } from './client-address.js'
import { HttpListener } from './http-listener.js'
import { logEvents, type ServeLog, serveLog } from './serve-log.js'
import { shutdownSignal } from './shutdown-signal.js'

/** Monitoring requests. Every process answers them, even without the role "api". */
const PROBES = /^[a-z]+:\/\/[^/]*\/(healthz|readyz|metrics)(?:[?#]|$)/

type Fetch = (request: Request, info: RequestInfo) => Response | Promise<Response>

export async function runServe(settings: ServeSettings): Promise<void> {
  // The signal listeners come first, so that no signal is missed.
  const shutdown = shutdownSignal()
  quietSqlite()
  const log = await serveLog(settings)
  const { store: where, schema, app, release } = settings
  const location = storeLocation({ store: where, ...(schema === undefined ? {} : { schema }) })
  const addressOf = clientAddress(settings.proxies)
  const sinks = { log: logSink(), ...(await openSinks(settings.sinks, process.env)) }
  if (settings.auth === 'tokens') await mustHaveTokens(location, settings)
  const belfry = createBelfry({
    store: await location.open({ migrate: settings.migrate }),
    roles: settings.roles.filter((role) => role !== 'api'),
    logger: log.logger,
    stopGrace: settings.grace,
    sinks,
    ...(app === undefined ? {} : { app }),
    ...(release === undefined ? {} : { release }),
  })
  logEvents(belfry, log)
  const server = createServer(belfry, serverOptions(settings, belfry.records, log))
  const begun = whenBegun()
  const fetch = withRoles(settings, belfry, server.fetch, () => shutdown.isRequested)
  const listener = new HttpListener({
    fetch: (request: Request, info: RequestInfo) => begun.promise.then(() => fetch(request, info)),
    addressOf,
    maxConnections: settings.maxConnections,
  })
  try {
    // A process whose port is taken must not take part: it would start runs and end at once. Requests wait for the start.
    const { address, port } = await listener.listen(settings.host, settings.port)
    await belfry.start()
    begun.resolve()
    announce(log, settings, location.name, `http://${address.includes(':') ? `[${address}]` : address}:${port}`)
    const signal = await shutdown.requested
    log.say(`${signal}: finishing requests in flight`, { signal, inFlight: listener.inFlight })
    const endBy = performance.now() + settings.grace
    const closed = listener.close(settings.grace)
    await server.close()
    await closed
    // The last requests may have added audit entries since the first call.
    await server.close()
    await belfry.stop({ grace: Math.max(endBy - performance.now(), 0) })
    log.say('stopped')
  } catch (error) {
    await listener.close(0)
    await belfry.stop({ grace: 0 })
    throw error
  }
  shutdown.exit()
}

function whenBegun(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((begin) => {
    resolve = begin
  })
  return { promise, resolve }
}

function serverOptions(settings: ServeSettings, records: RecordStore, { logger }: ServeLog) {
  const { auth, hosts, origins, maxBody, maxBatch, rate, cpuRate, addressRate, guessRate } = settings
  const rates = {
    token: { perSecond: rate, burst: rate * 5 },
    address: { perSecond: addressRate, burst: addressRate * 4 },
    guesses: { perSecond: guessRate, burst: guessRate * 25 },
  }
  return {
    authorise: tokenAuthorise(records, { open: auth === 'none', hosts, origins, rates }),
    limits: { bodyBytes: maxBody, batch: maxBatch, requestsPerSecond: rate, cpuMsPerSecond: cpuRate },
    logger,
  }
}

/** Limits the routes to the roles of this process, and fails readiness during shutdown. */
function withRoles(
  { roles, openMetrics }: ServeSettings,
  belfry: Belfry,
  fetch: Fetch,
  isStopping: () => boolean,
): Fetch {
  const source = metricsSource(belfry)
  const isApi = roles.includes('api')
  const answerProbe = async (probe: string, request: Request, info: RequestInfo) => {
    if (probe === 'readyz' && isStopping()) {
      return problemResponse(problem(503, 'STOPPING', 'this process is stopping'))
    }
    if (probe === 'metrics' && openMetrics && (request.method === 'GET' || request.method === 'HEAD')) {
      return toResponse(content(await metricsPage(source), METRICS_TYPE))
    }
    return fetch(request, info)
  }
  return (request, info) => {
    const [, probe] = PROBES.exec(request.url) ?? []
    if (probe !== undefined) return answerProbe(probe, request, info)
    if (isApi) return fetch(request, info)
    return problemResponse(problem(404, 'NOT_FOUND', 'this process does not have the role "api"'))
  }
}

/** Refuses to start a service that no caller could use, before it joins the store. */
async function mustHaveTokens(location: StoreLocation, { host, migrate }: ServeSettings): Promise<void> {
  const store = await location.open({ migrate })
  try {
    await store.open()
    if ((await new Tokens(store.records).list({ limit: 1 })).items.length > 0) return
  } finally {
    await store.close()
  }
  throw failure(
    'OPTION_INVALID',
    `there are no tokens, and ${host} needs one: create it with belfry token create --role admin`,
  )
}

function announce(log: ServeLog, { auth, roles }: ServeSettings, store: string, url: string): void {
  const access = auth === 'none' ? 'no tokens: every program on this machine is admin' : 'with tokens'
  log.say(`Belfry · ${store} · ${roles.join(', ')}`, { store, roles })
  log.say(`listening on ${url} · ${access}`, { url, auth })
}
