/** Schedules that are declared in code. They are put when the app starts, and synced with the app's releases. */
import { createHash } from 'node:crypto'
import { canonicalJson, type Json } from '../../core/checks/json.js'
import { failure } from '../../core/errors.js'
import { liveSets, setInForce } from '../../core/schedules/release.js'
import type { ScheduleDefinition } from '../../core/schedules/schedule.js'
import type { DeclaredSet, Store } from '../../core/store.js'
import type { ScheduleFields } from './schedule-input.js'
import { recordDeclared, setHash, undeclaredSchedules } from './undeclared.js'

const BATCH = 1_000
const LOOKS = 20

interface Declared {
  readonly input: ScheduleFields
  /** Where the app declared it. */
  readonly stack: string
}

function refuse(wrong: readonly Error[]): void {
  const [first] = wrong
  if (first === undefined) return
  if (wrong.length === 1) throw first
  const list = wrong.map(({ message }) => `\n- ${message}`).join('')
  throw failure('OPTION_INVALID', `${wrong.length} declared schedules are wrong:${list}`, {
    cause: new AggregateError(wrong),
  })
}

export class Declarations {
  readonly #store: Store
  readonly #app: string | undefined
  readonly #release: string | undefined
  readonly #onUndeclared: (ids: readonly string[]) => void
  /** How many more syncs look for schedules that are no longer declared: those of an instance that was killed show later. */
  #looks = LOOKS
  readonly #inputs = new Map<string, Declared>()
  #definitions = new Map<string, ScheduleDefinition>()
  #hash: string | undefined
  /** The live sets at the last sync of this instance's schedules. A change makes the next sync write them again. */
  #settledFor: string | undefined

  constructor(
    store: Store,
    app: string | undefined,
    release: string | undefined,
    onUndeclared: (ids: readonly string[]) => void,
  ) {
    this.#onUndeclared = onUndeclared
    this.#store = store
    this.#app = app
    this.#release = release
  }

  /** Identifies the set of declarations; undefined without declarations, or before `check`. */
  get hash(): string | undefined {
    return this.#hash
  }

  /** `caller` is the function that the app called: the stack of an error begins with the line that called it. */
  add(id: string, input: ScheduleFields, caller: (...args: never[]) => unknown): void {
    if (this.#inputs.has(id)) {
      throw failure('SCHEDULE_DUPLICATE', `schedule "${id}" is declared twice: give one of them another id`)
    }
    const place = { stack: '' }
    Error.captureStackTrace(place, caller)
    this.#inputs.set(id, { input, stack: place.stack })
  }

  /** Checks all declarations, before anything is written, and reports all that are wrong. */
  async check(parse: (id: string, input: ScheduleFields, app?: string) => Promise<ScheduleDefinition>): Promise<void> {
    const definitions = new Map<string, ScheduleDefinition>()
    const wrong: Error[] = []
    for (const [id, { input, stack }] of this.#inputs) {
      try {
        definitions.set(id, await parse(id, input, this.#app))
      } catch (error) {
        if (!(error instanceof Error)) throw error
        error.stack = `${error.name}: ${error.message}${stack.slice(stack.indexOf('\n'))}`
        wrong.push(error)
      }
    }
    refuse(wrong)
    this.#definitions = definitions
    // The hash includes the release. A release that returns to an earlier set of schedules thereby counts as newer than
    // that set.
    const text = canonicalJson([this.#release ?? null, [...definitions].sort()] as unknown as Json)
    if (this.#app !== undefined) this.#hash = createHash('sha256').update(text).digest('hex')
    else if (definitions.size > 0) this.#hash = setHash([...definitions.keys()])
  }

  /** Puts the declarations if their set is in force. Without an app they are put once and nothing is removed. */
  async sync(): Promise<void> {
    if (this.#app === undefined || this.#hash === undefined) {
      if (this.#settledFor === undefined) await this.#put()
      this.#settledFor = 'put'
      await this.#findUndeclared()
      return
    }
    const schedules = [...this.#definitions.keys()]
    const release = this.#release === undefined ? {} : { release: this.#release }
    await this.#store.instances.declare(this.#app, { hash: this.#hash, schedules, ...release })
    const now = await this.#store.now()
    const sets = await this.#declaredSets(this.#app, this.#hash, now)
    const live = liveSets(sets, now)
    const situation = live
      .map(({ hash }) => hash)
      .sort()
      .join()
    if (setInForce(sets, now)?.hash !== this.#hash) this.#settledFor = undefined
    else if (situation !== this.#settledFor) {
      await this.#put()
      await this.#removeUndeclared(this.#app, live)
      this.#settledFor = situation
    }
  }

  /** Says once which schedules of earlier code no live instance declares. */
  async #findUndeclared(): Promise<void> {
    if (this.#hash === undefined || this.#looks === 0) return
    if (this.#looks === LOOKS) await recordDeclared(this.#store, this.#hash, [...this.#definitions.keys()])
    this.#looks -= 1
    const found = await undeclaredSchedules(this.#store, this.#hash)
    if (found.length === 0) return
    this.#looks = 0
    this.#onUndeclared(found)
  }

  /** A set is alive while an instance with that set has a valid lease. This instance's own set is alive, joined or not. */
  async #declaredSets(app: string, own: string, now: number): Promise<readonly DeclaredSet[]> {
    const instances = await this.#store.instances.list()
    const alive = new Set(instances.filter(({ expiresAt }) => expiresAt >= now).map(({ declarations }) => declarations))
    const sets = await this.#store.instances.declarations(app)
    return sets.map((set) => (set.hash === own || alive.has(set.hash) ? { ...set, aliveAt: now } : set))
  }

  async #put(): Promise<void> {
    const writes = Array.from(this.#definitions, ([id, definition]) => ({ id, definition }))
    for (let at = 0; at < writes.length; at += BATCH) await this.#store.schedules.put(writes.slice(at, at + BATCH))
  }

  /** Removes schedules of the app that no live release declares. */
  async #removeUndeclared(app: string, live: readonly DeclaredSet[]): Promise<void> {
    const declared = new Set(live.flatMap(({ schedules }) => schedules))
    let after: string | undefined
    do {
      const page = await this.#store.schedules.list({ app, limit: BATCH, ...(after === undefined ? {} : { after }) })
      const gone = page.items.filter(({ id }) => !declared.has(id)).map(({ id }) => id)
      if (gone.length > 0) await this.#store.schedules.remove(gone)
      after = page.next
    } while (after !== undefined)
  }
}
