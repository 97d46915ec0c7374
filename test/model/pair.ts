/**
 * Two stores that run the same operations: the memory store as the model, and the store under test. Ids, tokens and
 * versions differ between them, so they are compared by order of first appearance.
 */
import type { Json } from '../../src/core/checks/json.js'
import type { Run } from '../../src/core/runs/run.js'
import type { Schedule } from '../../src/core/schedules/schedule.js'
import type { Store } from '../../src/core/store.js'

export const IDS = ['s1', 's2', 's3']

export interface Side {
  readonly store: Store
  /** Numbers this store's run ids and attempt tokens in order of creation. */
  readonly runs: Names<string>
  readonly tokens: Names<number>
  /** Lock tokens are numbered under their lock's name, because two locks may have equal tokens by chance. */
  readonly lockTokens: Names<string>
  readonly versions: Names<number>
  /** Whether the store is sharded: shards record ticks concurrently. */
  readonly isSharded: boolean
}

/** Numbers values in order of first appearance. */
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

export function side(store: Store, isSharded: boolean): Side {
  return { store, runs: new Names(), tokens: new Names(), lockTokens: new Names(), versions: new Names(), isSharded }
}

/** A claimed attempt, by its numbers. */
export interface Claimed {
  readonly run: number
  readonly token: number
  readonly instance: string
}

export interface Pair {
  readonly model: Side
  readonly real: Side
  readonly claimed: Claimed[]
  /** The last claim number of each instance. */
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

/** Runs, oldest first. In a sharded store the order of different schedules' ticks of one instant is undefined. */
export function inOrder<Item extends Run>(of: Side, runs: readonly Item[]): readonly Item[] {
  if (!of.isSharded) return runs
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

/** Converts to JSON, so that absent and undefined are equal. */
export function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null)) as Json
}

/** Of everything, and of what one of the schedules owns. */
const PREFIXES = ['', IDS[0] ?? '']

async function counted({ schedules, runs }: Side['store'], prefix: string): Promise<readonly number[]> {
  const query = { prefix, limit: 1_000 }
  return Promise.all([schedules.count(query), runs.count(query)])
}

/** Everything that the store's operations can read. */
export async function snapshot(of: Side): Promise<Json> {
  const { store } = of
  const schedules = await store.schedules.list({ limit: 1_000 })
  const runs = await store.runs.list({ limit: 1_000 })
  const leases = await store.leases.list({ limit: 1_000 })
  const skips = await Promise.all(IDS.map((id) => store.schedules.skips(id, 0, Number.MAX_SAFE_INTEGER, 1_000)))
  // Oldest first, so that numbers follow the order of creation.
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
    counts: await Promise.all(PREFIXES.map((prefix) => counted(store, prefix))),
    frozen: await store.frozen(),
  })
}
