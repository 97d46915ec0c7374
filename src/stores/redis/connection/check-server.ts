/** Refuses servers on which the promise cannot be kept, before anything is written there. */
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

export async function checkServer(server: Server, key: string, asCluster: boolean): Promise<void> {
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
}

/** A field of INFO, or an empty text. */
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
