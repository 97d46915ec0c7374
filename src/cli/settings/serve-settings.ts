import { DEFAULTS } from '../../core/defaults.js'
import { failure } from '../../core/errors.js'
import { ENGINE_ROLES } from '../../core/instance.js'
import { isLoopback } from '../../server/security/host-check.js'
import {
  duration,
  type Given,
  object,
  oneOf,
  optional,
  resolveSettings,
  setting,
  someOf,
  text,
  texts,
  type ValuesOf,
  wholeNumber,
  yes,
} from './config.js'

const SERVE_ROLES = ['api', ...ENGINE_ROLES] as const
export const DEFAULT_STORE = DEFAULTS.serve.store
export const DEFAULT_PORT = DEFAULTS.serve.port

const TABLE = {
  store: setting(text, DEFAULT_STORE),
  schema: setting<string | undefined>(optional(text), undefined),
  migrate: setting(yes, false),
  host: setting(text, DEFAULTS.serve.host),
  port: setting(wholeNumber(0, 65_535), DEFAULT_PORT),
  roles: setting(someOf(...SERVE_ROLES), SERVE_ROLES),
  auth: setting<'tokens' | 'none' | undefined>(optional(oneOf('tokens', 'none')), undefined),
  hosts: setting(texts, []),
  origins: setting(texts, []),
  proxies: setting(texts, []),
  openMetrics: setting(yes, false),
  app: setting<string | undefined>(optional(text), undefined),
  release: setting<string | undefined>(optional(text), undefined),
  log: setting(oneOf('text', 'json'), 'text'),
  logLevel: setting(oneOf('debug', 'info', 'warn', 'error'), 'info'),
  grace: setting(duration, DEFAULTS.serve.graceMs),
  maxBody: setting(wholeNumber(1_024, 1_073_741_824), DEFAULTS.server.bodyBytes),
  maxBatch: setting(wholeNumber(1, 1_000_000), DEFAULTS.server.batch),
  rate: setting(wholeNumber(1, 1_000_000), DEFAULTS.server.requestsPerSecond),
  addressRate: setting(wholeNumber(1, 1_000_000), DEFAULTS.serve.requestsPerSecondOfAddress),
  guessRate: setting(wholeNumber(1, 1_000_000), DEFAULTS.serve.wrongTokensPerSecond),
  sinks: setting(object, {}),
}

export type ServeSettings = Omit<ValuesOf<typeof TABLE>, 'auth'> & { readonly auth: 'tokens' | 'none' }

/** Settings that make sense together. */
export function serveSettings(given: Given): ServeSettings {
  const { auth, ...settings } = resolveSettings(TABLE, given)
  const { host, hosts } = settings
  const isPrivate = isLoopback(host) && hosts.every((each) => isLoopback(each))
  if (auth === 'none' && !isPrivate) {
    throw failure(
      'OPTION_INVALID',
      `without tokens only this machine is served: leave out --auth none, or listen on 127.0.0.1 and name no hosts`,
    )
  }
  return { ...settings, auth: auth ?? (isPrivate ? 'none' : 'tokens') }
}

/** Where the store is, for commands that need no more than that. A config file may hold everything else too. */
export function storeSettings(given: Given): { readonly store: string; readonly schema?: string } {
  const { store, schema } = resolveSettings(TABLE, given)
  return { store, ...(schema === undefined ? {} : { schema }) }
}
