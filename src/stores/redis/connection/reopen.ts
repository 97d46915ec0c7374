/** How another thread reaches the same Redis: by the URL, or by the options of the client that the user passed in. */
import { lookup, resolveSrv } from 'node:dns'
import { copyData } from '../../../core/connection/copied-data.js'
import { installedPackage } from '../../../core/connection/installed-package.js'
import type { NoSource, StoreSource } from '../../../core/instances/beat-store.js'
import type { RedisClient } from './driver.js'
import type { ClientCopy } from './load-client.js'

/** The options with which the beat thread opens its store. */
export interface BeatStoreOptions {
  readonly client: ClientCopy
  readonly prefix: string
  readonly shards: number
  readonly waitReplicas: number
  readonly timeoutMs: number | undefined
}

export function reopen(
  { client, url, nodes }: { readonly client?: RedisClient; readonly url?: string; readonly nodes?: readonly string[] },
  rest: Omit<BeatStoreOptions, 'client'>,
): StoreSource | NoSource {
  const copy =
    client === undefined ? { kind: 'urls' as const, urls: nodes ?? [url ?? ''], cluster: !url } : copyOf(client)
  if ('because' in copy) return copy
  return {
    module: new URL('./beat-store.js', import.meta.url).href,
    options: { client: copy, ...rest } satisfies BeatStoreOptions,
  }
}

/**
 * Options that are not copied to the beat thread: its client reconnects in its own way, and uses no custom commands or
 * caches.
 */
const NEEDLESS: ReadonlySet<string> = new Set([
  ...['reconnectStrategy', 'retryStrategy', 'clusterRetryStrategy', 'sentinelRetryStrategy', 'reconnectOnError'],
  ...['sentinelReconnectStrategy', 'scaleReads', 'preferredSlaves', 'lazyConnect', 'autoPipeliningIgnoredCommands'],
  ...['scripts', 'functions', 'modules', 'commandOptions', 'clientSideCache', 'himportRegistry', 'himportFieldsets'],
])

function copyOf(client: RedisClient): ClientCopy | NoSource {
  const { options, _options, startupNodes } = client as GivenClient
  const isIoredis = 'call' in client && 'isCluster' in client
  const name = isIoredis ? 'ioredis' : '@redis/client'
  if (installedPackage(name) === undefined) return impossible(`is of another package than \`${name}\``)
  const cluster = isIoredis ? client.isCluster : 'masters' in client
  const { value, strange } = copyData(withoutDefaults(options ?? _options), NEEDLESS)
  if (strange.length > 0) return impossible(`has options that only this thread can use (${strange.join(', ')})`)
  if (typeof value !== 'object') return impossible('does not tell its options')
  const nodes = copyData(startupNodes, NEEDLESS).value
  return { kind: isIoredis ? 'ioredis' : 'node-redis', cluster, options: value as Record<string, unknown>, nodes }
}

/**
 * Drops the runtime's own DNS functions, which a cluster of ioredis lists among its options. Functions cannot be sent
 * to a thread, and the client there uses the same defaults.
 */
function withoutDefaults(options: unknown): unknown {
  if (typeof options !== 'object' || options === null) return options
  const isDefault = (value: unknown) => value === lookup || value === resolveSrv
  return Object.fromEntries(Object.entries(options).filter(([, value]) => !isDefault(value)))
}

/** Where clients keep the options that they were created with. */
interface GivenClient {
  readonly options?: unknown
  readonly _options?: unknown
  readonly startupNodes?: unknown
}

function impossible(why: string): NoSource {
  return { because: `the client of the Redis store ${why}; pass a \`url\` or \`nodes\` instead` }
}
