/** Refuses servers that cannot keep the store's guarantees, before anything is written to them. */
import { failure } from '../../../core/errors.js'
import source from './look-at-server.lua'
import { luaScript, number, text } from './lua-script.js'
import type { Server } from './server.js'

export const lookScript = luaScript({
  name: 'connection/look-at-server',
  source,
  takes: {},
  gives: { info: text, now: number, serverTime: number },
})

const OLDEST = [6, 2] as const

/** Returns a warning if the server may lose writes that it has acknowledged. */
export async function checkServer(server: Server, key: string, asCluster: boolean): Promise<string | undefined> {
  const { info, now } = await server.callAt(lookScript, key, {})
  const field = (name: string) => infoField(info, name)
  if (field('role') === 'slave') {
    throw failure('STORE_READ_ONLY', 'this Redis server is a replica: connect to its primary')
  }
  if (field('cluster_enabled') === '1' && !asCluster) {
    throw failure('STORE_INVALID', 'this Redis server is a node of a cluster: give `nodes`, or a cluster client')
  }
  checkVersion(field('redis_version'))
  checkPolicy(field('maxmemory_policy') || 'noeviction')
  server.time.heard(now)
  return keepsLog(info) ? undefined : `${NO_LOG}: ${KEEP_LOG}`
}

export const NO_LOG =
  'this Redis server writes no log of its changes (appendonly no): a restart loses schedules, runs and locks since its last snapshot, or all of them'
export const KEEP_LOG =
  'redis-cli config set appendonly yes, and the same in redis.conf; docs/redis.md has what each setting may lose'

/** Whether the server logs its writes to a file. A server whose INFO does not say is assumed to. */
export function keepsLog(info: string): boolean {
  return infoField(info, 'aof_enabled') !== '0'
}

/** A field of INFO, or an empty text if it is missing. */
export function infoField(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''
}

function checkVersion(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return
  throw failure(
    'STORE_INVALID',
    `this Redis server is version ${version}: Belfry needs ${OLDEST.join('.')} or newer; upgrade it, or use another server`,
  )
}

function checkPolicy(policy: string): void {
  if (policy === 'noeviction') return
  throw failure(
    'STORE_INVALID',
    `this Redis server may throw schedules and locks away when its memory is full (maxmemory-policy ${policy}): set it to noeviction, or use another server`,
  )
}
