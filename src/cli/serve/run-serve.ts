/** `belfry serve`, from its settings to its end. */
import { type Belfry, createBelfry } from '../../belfry.js'
import { failure } from '../../core/errors.js'
import type { RecordStore } from '../../core/store.js'
import { problem, problemResponse } from '../../server/http/problem.js'
import { content, toResponse } from '../../server/http/reply.js'
import { createServer, type RequestInfo } from '../../server/index.js'
import { tokenAuthorise } from '../../server/security/authorise.js'
import { Tokens } from '../../server/security/tokens.js'
import { METRICS_TYPE, metricsPage, metricsSource } from '../../server/shapes/metrics-page.js'
import { openSinks } from '../settings/open-sinks.js'
import { type StorePlace, storePlace } from '../settings/open-store.js'
import { quietSqlite } from '../settings/quiet-sqlite.js'
import type { ServeSettings } from '../settings/serve-settings.js'
import { clientAddress } from './client-address.js'
import { ending } from './ending.js'
import { HttpListener } from './http-listener.js'
import { type ServeLog, serveLog, tellEvents } from './serve-log.js'

/** What is asked by machines that watch over this one, in a whole URL. */
const PROBES = /^[a-z]+:\/\/[^/]*\/(healthz|readyz|metrics)(?:[?#]|$)/

type Fetch = (request: Request, info: RequestInfo) => Response | Promise<Response>

export async function runServe(settings: ServeSettings): Promise<void> {
  // First of all, so that no signal is missed.
  const end = ending()
  quietSqlite()
  const log = await serveLog(settings)
  const { store: where, schema, app, release } = settings
  const place = storePlace({ store: where, ...(schema === undefined ? {} : { schema }) })
  const addressOf = clientAddress(settings.proxies)
  const sinks = await openSinks(settings.sinks, process.env)
  if (settings.auth === 'tokens') await mustHaveTokens(place, settings)
  const belfry = createBelfry({
    store: await place.open({ migrate: settings.migrate }),
    roles: settings.roles.filter((role) => role !== 'api'),
    logger: log.logger,
    stopGrace: settings.grace,
    sinks,
    ...(app === undefined ? {} : { app }),
    ...(release === undefined ? {} : { release }),
  })
  tellEvents(belfry, log)
  try {
    await belfry.start()
    const server = createServer(belfry, serverOptions(settings, belfry.records, log))
    const fetch = served(settings, belfry, server.fetch, () => end.wasAsked)
    const listener = new HttpListener({ fetch, addressOf })
    const { address, port } = await listener.listen(settings.host, settings.port)
    announce(log, settings, place.name, `http://${address.includes(':') ? `[${address}]` : address}:${port}`)
    const signal = await end.asked
    log.say(`${signal}: finishing what is under way`, { signal, inFlight: listener.inFlight })
    const endBy = performance.now() + settings.grace
    const closed = listener.close(settings.grace)
    await server.close()
    await closed
    // Once more, for what the last requests changed.
    await server.close()
    await belfry.stop({ grace: Math.max(endBy - performance.now(), 0) })
    log.say('bye')
  } catch (error) {
    await belfry.stop({ grace: 0 })
    throw error
  }
  end.over()
}

function serverOptions(settings: ServeSettings, records: RecordStore, { logger }: ServeLog) {
  const { auth, hosts, origins, maxBody, maxBatch, rate, addressRate, guessRate } = settings
  const rates = {
    token: { perSecond: rate, burst: rate * 5 },
    address: { perSecond: addressRate, burst: addressRate * 4 },
    guesses: { perSecond: guessRate, burst: guessRate * 25 },
  }
  return {
    authorise: tokenAuthorise(records, { open: auth === 'none', hosts, origins, rates }),
    limits: { bodyBytes: maxBody, batch: maxBatch, requestsPerSecond: rate },
    logger,
  }
}

/** What this process answers, of all that a server can: by its roles, and by whether it is on its way out. */
function served({ roles, openMetrics }: ServeSettings, belfry: Belfry, fetch: Fetch, isEnding: () => boolean): Fetch {
  const source = metricsSource(belfry)
  const isApi = roles.includes('api')
  const answerProbe = async (probe: string, request: Request, info: RequestInfo) => {
    if (probe === 'readyz' && isEnding()) {
      return problemResponse(problem(503, 'STOPPING', 'this process is on its way out'))
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
    return problemResponse(problem(404, 'NOT_FOUND', 'this process has no role "api", and serves none'))
  }
}

/** Before anything takes part: a service that nobody could use is not started at all. */
async function mustHaveTokens(place: StorePlace, { host, migrate }: ServeSettings): Promise<void> {
  const store = await place.open({ migrate })
  try {
    await store.open()
    if ((await new Tokens(store.records).list({ limit: 1 })).items.length > 0) return
  } finally {
    await store.close()
  }
  throw failure(
    'OPTION_INVALID',
    `there are no tokens yet, so nobody could log in on ${host}: make one with belfry token create --role admin`,
  )
}

function announce(log: ServeLog, { auth, roles }: ServeSettings, store: string, url: string): void {
  const login = auth === 'none' ? 'no login: whoever is on this machine is admin' : 'with tokens'
  log.say(`Belfry · ${store} · ${roles.join(', ')}`, { store, roles })
  log.say(`listening on ${url} · ${login}`, { url, auth })
}
