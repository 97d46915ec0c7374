/**
 * Scripts: one operation, a pair of files. `runs/settle.lua` is the operation; `runs/settle.ts` declares what it takes and
 * gives, by name, and calls it. A script is sent by its digest, and whole only to a server that does not know it yet.
 */
import { createHash } from 'node:crypto'
import byHand from '../schema/clocks/by-hand.lua'
import serverClock from '../schema/clocks/server.lua'
import shiftedClock from '../schema/clocks/shifted.lua'
import start from '../schema/script.lua'
import { type Named, named, type Shape } from './shapes.js'

/** Which clock a store goes by: the server's; for benches the server's, moved; for tests one that is turned by hand. */
export type ClockKind = 'server' | 'shifted' | 'handTurned'

interface Composed {
  readonly text: string
  readonly sha: string
}

export interface LuaScript<Takes, Gives> {
  readonly name: string
  /** It changes what others rely on: replicas are waited for, if that was asked for. */
  readonly writes: boolean
  /** For each kind of clock. */
  readonly composed: Readonly<Record<ClockKind, Composed>>
  readonly argument: (takes: Takes) => string
  readonly answer: (reply: unknown) => Answer<Gives>
  /** The names that it takes and gives, for the test that compares them with the script's. */
  readonly names: { readonly takes: readonly string[]; readonly gives: readonly string[] }
}

export interface Answer<Gives> {
  readonly gives: Gives
  /** What others should look at. */
  readonly woken: readonly string[]
}

type Fields = Readonly<Record<string, Shape<unknown>>>

/** All scripts of the store, for the linter and the tests. */
export const scripts: LuaScript<never, unknown>[] = []

export function luaScript<Takes extends Fields, Gives extends Fields>(declared: {
  readonly name: string
  readonly source: string
  readonly writes?: true
  readonly takes: Takes
  readonly gives: Gives
}): LuaScript<Named<Takes>, Named<Gives>> {
  const { name, source, writes = false } = declared
  const [takes, gives] = [named(declared.takes), named(declared.gives)]
  const composed = (clock: string) => {
    const text = `${clock}${start}${source}`
    return { text, sha: createHash('sha1').update(text).digest('hex') }
  }
  const made = {
    ...{ name, writes, names: { takes: takes.names, gives: gives.names } },
    composed: { server: composed(serverClock), shifted: composed(shiftedClock), handTurned: composed(byHand) },
    argument: (values: Named<Takes>) => wellFormed(JSON.stringify(values)),
    answer(reply: unknown): Answer<Named<Gives>> {
      const said = String(reply)
      const lineEnd = said.indexOf('\n')
      const woken = lineEnd === 0 ? [] : said.slice(0, lineEnd).split(' ')
      return { gives: gives.read(JSON.parse(said.slice(lineEnd + 1))), woken }
    },
  }
  scripts.push(made)
  return made
}

const ESCAPE = /\\(?:u[Dd][89A-Fa-f][0-9A-Fa-f]{2}|.)/g

/** JSON escapes half a character, and cjson reads no such escape: it becomes what UTF-8 makes of it. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json
  return json.replace(ESCAPE, (found) => (found.length > 2 ? '\ufffd' : found))
}
