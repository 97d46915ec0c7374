/**
 * Scripts: each operation is a pair of files. `runs/settle.lua` is the operation; `runs/settle.ts` declares its
 * parameters and results by name, and calls it. A script is sent by its digest, and as text only to a server that does
 * not know it yet.
 */
import { createHash } from 'node:crypto'
import byHand from '../schema/clocks/by-hand.lua'
import serverClock from '../schema/clocks/server.lua'
import shiftedClock from '../schema/clocks/shifted.lua'
import start from '../schema/script.lua'

/**
 * Which clock a store uses: the server's; for benches the server's plus an offset; for tests one that the test sets.
 */
export type ClockKind = 'server' | 'shifted' | 'handTurned'

interface Composed {
  readonly text: string
  readonly sha: string
}

export interface LuaScript<Takes, Gives> {
  readonly name: string
  /** Other instances rely on what the script writes, so it waits for replicas if `waitReplicas` is set. */
  readonly writes: boolean
  /** The complete script, for each kind of clock. */
  readonly composed: Readonly<Record<ClockKind, Composed>>
  readonly argument: (takes: Takes) => string
  readonly answer: (reply: unknown) => Answer<Gives>
  /** The names of its parameters and results, for the test that compares them with the script. */
  readonly names: { readonly takes: readonly string[]; readonly gives: readonly string[] }
}

export interface Answer<Gives> {
  readonly gives: Gives
  /** The changes to hint at, such as `runs`. */
  readonly woken: readonly string[]
}

/** All scripts of the store, for the linter and the tests. */
export const scripts: LuaScript<never, unknown>[] = []

export function luaScript<Takes extends Fields, Gives extends Fields>(declared: {
  readonly name: string
  readonly source: string
  readonly writes?: true
  readonly takes: Takes
  readonly gives: Gives
}): LuaScript<Named<Takes>, Told<Named<Gives>>> {
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
    answer(reply: unknown): Answer<Told<Named<Gives>>> {
      const said = String(reply)
      const lineEnd = said.indexOf('\n')
      const woken = lineEnd === 0 ? [] : said.slice(0, lineEnd).split(' ')
      return { gives: gives.read(JSON.parse(said.slice(lineEnd + 1))) as Told<Named<Gives>>, woken }
    },
  }
  scripts.push(made)
  return made
}

const ESCAPE = /\\(?:u[Dd][89A-Fa-f][0-9A-Fa-f]{2}|.)/g

/** JSON.stringify escapes a lone surrogate, and cjson refuses that escape. It becomes U+FFFD, as in UTF-8. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json
  return json.replace(ESCAPE, (found) => (found.length > 2 ? '\ufffd' : found))
}

/**
 * The shape of a parameter or result: its TypeScript type, and how to read it. Parameters travel to the script as one
 * JSON text, and results travel back as one.
 *
 * `read` repairs what Lua changes. Lua has one kind of table, so an empty list comes back as `{}`. cjson writes only 14
 * digits of a number, so tokens and other long numbers come back as texts.
 */
export interface Shape<Value> {
  readonly read: (answer: unknown) => Value
  /** The names of its fields, for the test that compares them with the script. */
  readonly names: readonly string[]
}

type ValueOf<S> = S extends Shape<infer Value> ? Value : never
/** The type of a result that has this shape. */
export type ToldOf<S> = Told<ValueOf<S>>

type Fields = Readonly<Record<string, Shape<unknown>>>
type Optional<F extends Fields> = {
  [Name in keyof F]: undefined extends ValueOf<F[Name]> ? Name : never
}[keyof F]

/** A field whose value may be undefined may be left out. */
type Named<F extends Fields> = {
  readonly [Name in Exclude<keyof F, Optional<F>>]: ValueOf<F[Name]>
} & { readonly [Name in Optional<F>]?: ValueOf<F[Name]> }

/** In a result, a field without a value is absent, and never undefined. */
type Told<Value> = Value extends readonly (infer Item)[]
  ? readonly Told<Item>[]
  : Value extends object
    ? { readonly [Name in keyof Value]: Told<Exclude<Value[Name], undefined>> }
    : Value

export const text: Shape<string> = { read: String, names: [] }
export const number: Shape<number> = { read: Number, names: [] }
export const flag: Shape<boolean> = { read: (answer) => answer === true, names: [] }

/** One of several words. The value is not checked. */
export function oneOf<Word extends string>(..._words: readonly Word[]): Shape<Word> {
  return { read: (answer) => answer as Word, names: [] }
}

export function maybe<Value>(shape: Shape<Value>): Shape<Value | undefined> {
  const read = (answer: unknown) =>
    answer === undefined || answer === null || answer === false ? undefined : shape.read(answer)
  return { read, names: shape.names }
}

export function listOf<Value>(shape: Shape<Value>): Shape<readonly Value[]> {
  return { read: (answer) => (Array.isArray(answer) ? answer.map(shape.read) : []), names: shape.names }
}

export function named<F extends Fields>(fields: F): Shape<Named<F>> {
  const entries = Object.entries(fields)
  const read = (answer: unknown) => {
    const given = answer as Readonly<Record<string, unknown>>
    const value: Record<string, unknown> = {}
    for (const [name, shape] of entries) {
      const own = shape.read(given[name])
      if (own !== undefined) value[name] = own
    }
    return value as Named<F>
  }
  return { read, names: entries.flatMap(([name, shape]) => [name, ...shape.names]) }
}
