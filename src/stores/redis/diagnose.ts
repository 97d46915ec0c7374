/** Checks for `belfry doctor`: the servers' settings and memory, overwritten keys, and clock skew between masters. */
import type { Check, Finding } from '../../core/diagnosis.js'
import { everywhere } from './cluster/shards.js'
import { infoField, KEEP_LOG, keepsLog, lookScript, NO_LOG } from './connection/check-server.js'
import { listOf, luaScript, text } from './connection/lua-script.js'
import type { Server } from './connection/server.js'
import keyTypesSource from './schema/key-types.lua'
import { KEYS, type KeyName } from './schema/keys.js'

interface Look {
  readonly keepsLog: boolean
  readonly field: (name: string) => string
  /**
   * How far the server's clock is ahead of this process's monotonic clock, plus or minus `unsureMs`. Only the
   * differences between servers matter.
   */
  readonly aheadMs: number
  readonly unsureMs: number
}

const keyTypesScript = luaScript({
  name: 'schema/key-types',
  source: keyTypesSource,
  takes: { names: listOf(text) },
  gives: { keys: listOf(text), types: listOf(text) },
})

/** The types that `KEYS` names, and Redis's words for them. */
const TYPES: Readonly<Record<string, string>> = { hash: 'hash', set: 'set', 'sorted set': 'zset' }

/** With more skew, the ticks of one master are late, or tokens jump when a shard moves. */
const SKEW_MS = 500
const MUCH_BYTES = 100 * 2 ** 20

export async function diagnose(server: Server): Promise<readonly Check[]> {
  const looks = await everywhere(server, (shard) => look(server, shard))
  const versions = [...new Set(looks.map(versionOf))]
  const shards = looks.length === 1 ? 'one shard' : `${looks.length} shards`
  const store = { name: 'store', about: `${versions.join(' and ')}, ${shards}`, findings: [] }
  return [store, await keys(server), eviction(looks), persistence(looks), clocks(looks), memory(looks)]
}

/**
 * The keys of which every shard has one, such as `runs`, with their Redis types. Keys such as `lock:<name>` are left
 * out.
 */
const FIXED = Object.entries(KEYS).flatMap(([name, about]) => {
  const [kind = ''] = about.split(':')
  const type = TYPES[kind]
  return type === undefined ? [] : [{ name: name as KeyName, type }]
})

/** Finds keys that another program has overwritten with values of another type. */
async function keys(server: Server): Promise<Check> {
  const names = FIXED.map(({ name }) => name)
  const findings = await everywhere(server, async (shard) => {
    const { keys, types } = await server.call(keyTypesScript, shard, { names })
    return FIXED.flatMap(({ type }, at): Finding[] => {
      const { [at]: found = 'none' } = types
      if (found === type || found === 'none') return []
      const key = keys[at] ?? ''
      const what = `the key ${key} is a ${found}, and the store needs a ${type}: another program has overwritten it`
      return [{ what, fix: `restore it from a backup, or lose what it held: redis-cli del '${key}'` }]
    })
  })
  return { name: 'stored keys', about: `${names.length} keys in each shard`, findings: findings.flat() }
}

async function look(server: Server, shard: number): Promise<Look> {
  const sentAt = server.monotonic()
  const { info, serverTime } = await server.call(lookScript, shard, {})
  const gotAt = server.monotonic()
  return {
    field: (name) => infoField(info, name),
    keepsLog: keepsLog(info),
    aheadMs: serverTime * 1_000 - (sentAt + gotAt) / 2,
    unsureMs: (gotAt - sentAt) / 2,
  }
}

/** Valkey also reports a Redis version, with which it is compatible. */
function versionOf({ field }: Look): string {
  const valkey = field('valkey_version')
  return valkey === '' ? `Redis ${field('redis_version')}` : `Valkey ${valkey}`
}

function eviction(looks: readonly Look[]): Check {
  const policies = [...new Set(looks.map(({ field }) => field('maxmemory_policy') || 'noeviction'))]
  const findings = policies
    .filter((policy) => policy !== 'noeviction')
    .map((policy) => ({
      what: `a server may throw schedules and locks away when its memory is full (maxmemory-policy ${policy})`,
      fix: 'redis-cli config set maxmemory-policy noeviction, and the same in redis.conf',
    }))
  return { name: 'eviction', about: `maxmemory-policy ${policies.join(' and ')}`, findings }
}

function persistence(looks: readonly Look[]): Check {
  const without = looks.filter((each) => !each.keepsLog).length
  return {
    name: 'persistence',
    about: without === 0 ? 'changes are logged' : `${without} of ${looks.length} servers log no changes`,
    findings: without === 0 ? [] : [{ what: NO_LOG, fix: KEEP_LOG }],
  }
}

function clocks(looks: readonly Look[]): Check {
  const latest = Math.min(...looks.map(({ aheadMs, unsureMs }) => aheadMs + unsureMs))
  const earliest = Math.max(...looks.map(({ aheadMs, unsureMs }) => aheadMs - unsureMs))
  const apartMs = Math.max(Math.round(earliest - latest), 0)
  const findings: Finding[] =
    apartMs <= SKEW_MS
      ? []
      : [
          {
            what: `the clocks of two masters are ${apartMs} ms apart`,
            fix: 'let NTP set the clocks of all Redis hosts',
          },
        ]
  return { name: 'masters', about: `their clocks are at least ${apartMs} ms apart`, findings }
}

function memory(looks: readonly Look[]): Check {
  const findings: Finding[] = []
  let used = 0
  for (const { field } of looks) {
    const [bytes, most] = [Number(field('used_memory')), Number(field('maxmemory'))]
    used = Math.max(used, bytes)
    if (most > 0 && bytes > most * 0.9) {
      findings.push({ what: `a server uses ${megabytes(bytes)} of ${megabytes(most)}`, fix: 'give it more maxmemory' })
    }
    if (bytes > MUCH_BYTES && Number(field('mem_fragmentation_ratio')) > 2) {
      findings.push({
        what: 'a server holds twice the memory that it uses',
        fix: 'redis-cli config set activedefrag yes',
      })
    }
  }
  return { name: 'bloat', about: `${megabytes(used)} in use`, findings }
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MB`
}
