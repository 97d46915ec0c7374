import { DEFAULTS } from '../../core/defaults.js'
import { failure } from '../../core/errors.js'
import { ENGINE_ROLES } from '../../core/instances/instance.js'
import { isLoopback } from '../../server/security/host-check.js'
import {
  boolean,
  duration,
  object,
  oneOf,
  optional,
  resolveSettings,
  type SettingSources,
  setting,
  someOf,
  text,
  texts,
  type ValuesOf,
  wholeNumber,
} from './config.js'
import { mustNotGetPassword } from './found-store.js'

const SERVE_ROLES = ['api', ...ENGINE_ROLES] as const
export const DEFAULT_STORE = DEFAULTS.serve.store
export const DEFAULT_PORT = DEFAULTS.serve.port

const TABLE = {
  store: setting(text, DEFAULT_STORE),
  schema: setting<string | undefined>(optional(text), undefined),
  migrate: setting(boolean, false),
  host: setting(text, DEFAULTS.serve.host),
  port: setting(wholeNumber(0, 65_535), DEFAULT_PORT),
  roles: setting(someOf(...SERVE_ROLES), SERVE_ROLES),
  auth: setting<'tokens' | 'none' | undefined>(optional(oneOf('tokens', 'none')), undefined),
  hosts: setting(texts, []),
  origins: setting(texts, []),
  proxies: setting(texts, []),
  openMetrics: setting(boolean, false),
  app: setting<string | undefined>(optional(text), undefined),
  release: setting<string | undefined>(optional(text), undefined),
  log: setting(oneOf('text', 'json'), 'text'),
  logLevel: setting(oneOf('debug', 'info', 'warn', 'error'), 'info'),
  grace: setting(duration, DEFAULTS.serve.graceMs),
  maxBody: setting(wholeNumber(1_024, 1_073_741_824), DEFAULTS.server.bodyBytes),
  maxBatch: setting(wholeNumber(1, 1_000_000), DEFAULTS.server.batch),
  rate: setting(wholeNumber(1, 1_000_000), DEFAULTS.server.requestsPerSecond),
  cpuRate: setting(wholeNumber(1, 1_000_000), DEFAULTS.server.cpuMsPerSecond),
  addressRate: setting(wholeNumber(1, 1_000_000), DEFAULTS.serve.requestsPerSecondOfAddress),
  guessRate: setting(wholeNumber(1, 1_000_000), DEFAULTS.serve.wrongTokensPerSecond),
  maxConnections: setting(wholeNumber(1, 1_000_000), DEFAULTS.serve.maxConnections),
  sinks: setting(object, {}),
}

export type ServeSettings = Omit<ValuesOf<typeof TABLE>, 'auth'> & { readonly auth: 'tokens' | 'none' }

/** Resolves and cross-checks the settings: without tokens only this machine may reach the service. */
export function serveSettings(sources: SettingSources): ServeSettings {
  mustNotGetPassword(sources)
  const { auth, ...settings } = resolveSettings(TABLE, sources)
  const { host, hosts } = settings
  const isPrivate = isLoopback(host) && hosts.every((each) => isLoopback(each))
  if (auth === 'none' && !isPrivate) {
    throw failure(
      'OPTION_INVALID',
      `without tokens the service must be private to this machine: remove --auth none, or listen on 127.0.0.1 and name no hosts`,
    )
  }
  return { ...settings, auth: auth ?? (isPrivate ? 'none' : 'tokens') }
}

/** The store, for commands that need no other setting. */
export function storeSettings(sources: SettingSources): { readonly store: string; readonly schema?: string } {
  mustNotGetPassword(sources)
  const { store, schema } = resolveSettings(TABLE, sources)
  return { store, ...(schema === undefined ? {} : { schema }) }
}
