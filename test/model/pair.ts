/**
 * Two stores that are told the same: the memory store as the model, and the one under test. Ids, tokens and versions
 * differ between them, so they are compared by the order in which they came.
 */
import type { Json } from '../../src/core/json.js'
import type { Run } from '../../src/core/run.js'
import type { Schedule } from '../../src/core/schedule.js'
import type { Store } from '../../src/core/store.js'

export const IDS = ['s1', 's2', 's3']

export interface Side {
  readonly store: Store
  /** What this store calls the nth run that was made, and the nth attempt's token. */
  readonly runs: Names<string>
  readonly tokens: Names<number>
  /** The same for locks: tokens of different names may be the same number in one store and not in the other. */
  readonly lockTokens: Names<string>
  readonly versions: Names<number>
  /** The store has several parts, which record ticks at the same time. */
  readonly apart: boolean
}

/** Numbers things in the order in which they are first seen. */
export class Names<Name> {
  readonly #numbers = new Map<Name, number>()
  readonly #names: Name[] = []

  numberOf(name: Name): number {
    const known = this.#numbers.get(name)
    if (known !== undefined) return known
    this.#numbers.set(name, this.#names.length)
    this.#names.push(name)
    return this.#names.length - 1
  }

  nameOf(number: number): Name | undefined {
    return this.#names[number]
  }

  get size(): number {
    return this.#names.length
  }
}

export function side(store: Store, apart: boolean): Side {
  return { store, runs: new Names(), tokens: new Names(), lockTokens: new Names(), versions: new Names(), apart }
}

/** An attempt that was claimed, by number. */
export interface Claimed {
  readonly run: number
  readonly token: number
  readonly instance: string
}

export interface Pair {
  readonly model: Side
  readonly real: Side
  readonly claimed: Claimed[]
  /** Claims are numbered per instance. */
  readonly claims: Map<string, number>
}

export function plainRun(of: Side, run: Run): Json {
  const { id, token, key, ...rest } = run
  return plain({
    ...rest,
    id: of.runs.numberOf(id),
    token: token === undefined ? null : of.tokens.numberOf(token),
    key: key === undefined ? null : { ...key },
  })
}

/** Runs, oldest first. Which schedule's ticks of one moment come first is nobody's promise when parts record at once. */
export function inOrder<Item extends Run>(of: Side, runs: readonly Item[]): readonly Item[] {
  if (!of.apart) return runs
  const placeOf = ({ createdAt, schedule = '', tick = 0 }: Run) =>
    `${createdAt} ${schedule.padEnd(2)} ${String(tick).padStart(16, '0')}`
  return [...runs].sort((one, other) => (placeOf(one) < placeOf(other) ? -1 : placeOf(one) > placeOf(other) ? 1 : 0))
}

export function plainSchedule(of: Side, { version, ...rest }: Schedule): Json {
  return plain({ ...rest, version: of.versions.numberOf(version) })
}

export function lockToken(of: Side, name: string, token: number): number {
  return of.lockTokens.numberOf(`${name} ${token}`)
}

/** As JSON, so that absent and undefined are the same. */
export function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null)) as Json
}

/** Everything that can be seen of a store. */
export async function snapshot(of: Side): Promise<Json> {
  const { store } = of
  const schedules = await store.schedules.list({ limit: 1_000 })
  const runs = await store.runs.list({ limit: 1_000 })
  const leases = await store.leases.list({ limit: 1_000 })
  const skips = await Promise.all(IDS.map((id) => store.schedules.skips(id, 0, Number.MAX_SAFE_INTEGER, 1_000)))
  // Oldest first, so that numbers are given in the order of creation.
  const oldestFirst = inOrder(of, [...runs.items].reverse())
  return plain({
    schedules: schedules.items.map((schedule) => plainSchedule(of, schedule)),
    runs: oldestFirst.map((run) => plainRun(of, run)),
    leases: leases.items.map(({ name, run, token, holder, ...rest }) => ({
      ...rest,
      name,
      token: run === undefined ? lockToken(of, name, token) : of.tokens.numberOf(token),
      holder: run === undefined ? holder : `run ${of.runs.numberOf(run)}`,
    })),
    skips,
    frozen: await store.frozen(),
  })
}
