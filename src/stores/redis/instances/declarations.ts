/** The sets of schedules that an app's instances declare. All are in the first shard. */
import type { DeclaredSet } from '../../../core/store.js'
import { listOf, luaScript, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import listSource from './declarations.lua'
import declareSource from './declare.lua'

type Declared = Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>

const declareScript = luaScript({
  name: 'instances/declare',
  source: declareSource,
  writes: true,
  takes: { app: text, hash: text, set: text },
  gives: {},
})

export async function declareSet(server: Server, app: string, declared: Declared): Promise<void> {
  const { hash, release, schedules } = declared
  const set = JSON.stringify({ hash, release, schedules })
  await server.call(declareScript, 0, { app, hash, set })
}

const listScript = luaScript({
  name: 'instances/declarations',
  source: listSource,
  takes: { app: text },
  gives: { sets: listOf(named({ firstSeenAt: number, aliveAt: number, set: text })) },
})

export async function listDeclared(server: Server, app: string): Promise<DeclaredSet[]> {
  const { sets } = await server.call(listScript, 0, { app })
  return sets
    .map(({ set, firstSeenAt, aliveAt }) => ({ ...(JSON.parse(set) as Declared), firstSeenAt, aliveAt }))
    .sort((one, other) => one.firstSeenAt - other.firstSeenAt)
}
