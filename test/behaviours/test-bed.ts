/**
 * The test bed of the behaviours: an empty store, any number of instances on it, and virtual time. The same tests run
 * on every store.
 */
import { describe, it } from 'vitest'
import type { BelfryOptions } from '../../src/api/belfry-options.js'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import type { Clock } from '../../src/core/clock.js'
import type { Logger } from '../../src/core/logger.js'
import type { Run } from '../../src/core/runs/run.js'
import type { Store } from '../../src/core/store.js'
import { SimulatedProcess } from '../../src/testing/simulated-process.js'
import { type StoreSetup, storeKinds } from './store-kinds.js'

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: object
}

export type InstanceOptions = Partial<Omit<BelfryOptions, 'store' | 'clock' | 'logger'>> & {
  /** The skew of this instance's own clock. */
  readonly skewMs?: number
  /** Wraps the store that the instance sees. */
  readonly wrap?: (store: Store) => Store
}

/** Short, so that takeovers are quick. */
const OPTIONS = { lease: '1s', poll: '50ms', stopGrace: '2s' } as const

export class TestBed {
  readonly #setup: StoreSetup
  readonly #processes = new Map<Belfry, SimulatedProcess>()
  readonly #logs = new Map<Belfry, LogLine[]>()
  readonly #instances: Belfry[] = []
  readonly #crashed = new Set<Belfry>()
  /** Direct access to the store, without an instance. */
  readonly store: Store

  constructor(setup: StoreSetup, store: Store) {
    this.#setup = setup
    this.store = store
  }

  /** Makes a new instance, not started. */
  async instance({ skewMs = 0, wrap, ...options }: InstanceOptions = {}): Promise<Belfry> {
    const handle = await this.#setup.handle()
    const clock = this.#setup.processClock?.() ?? this.#setup.clock
    const simulated = new SimulatedProcess(wrap?.(handle) ?? handle, skewed(clock, skewMs))
    const lines: LogLine[] = []
    const belfry = createBelfry({
      ...{ ...OPTIONS, ...(this.#setup.poll === undefined ? {} : { poll: this.#setup.poll }), ...options },
      store: simulated.store,
      clock: simulated.clock,
      logger: recorder(lines),
    })
    this.#processes.set(belfry, simulated)
    this.#logs.set(belfry, lines)
    this.#instances.push(belfry)
    return belfry
  }

  /** Like kill -9. */
  crash(belfry: Belfry): void {
    this.#processes.get(belfry)?.kill()
    this.#crashed.add(belfry)
  }

  /** Like SIGSTOP. */
  hold(belfry: Belfry): void {
    this.#processes.get(belfry)?.suspend()
  }

  /** Like SIGCONT. */
  resume(belfry: Belfry): void {
    this.#processes.get(belfry)?.resume()
  }

  logs(belfry: Belfry): readonly LogLine[] {
    return this.#logs.get(belfry) ?? []
  }

  now(): Promise<number> {
    return this.store.now()
  }

  elapse(ms: number): Promise<void> {
    return this.#setup.elapse(ms)
  }

  /** Sleeps in virtual time, for slow handlers. The test itself must not await it, because it must advance the time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#setup.clock.after(ms, resolve))
  }

  async until(condition: () => boolean | Promise<boolean>, what: string, timeoutMs = 15_000): Promise<void> {
    for (let waited = 0; !(await condition()); waited += 20) {
      if (waited > timeoutMs) throw new Error(`waited ${timeoutMs} ms for ${what}`)
      await this.elapse(20)
    }
  }

  /** Advances time while a promise is pending. */
  async settled<T>(promise: Promise<T>, timeoutMs = 15_000): Promise<T> {
    let done = false
    const finish = () => {
      done = true
    }
    promise.then(finish, finish)
    await this.until(() => done, 'a promise to settle', timeoutMs)
    return promise
  }

  /** Runs of a schedule, oldest first. */
  async runs(query: { schedule?: string; job?: string }): Promise<readonly Run[]> {
    const { items } = await this.store.runs.list({ ...query, limit: 1_000 })
    return [...items].reverse()
  }

  async close(): Promise<void> {
    for (const belfry of this.#instances) this.#processes.get(belfry)?.resume()
    // A crashed instance cannot stop: its store no longer answers it.
    const alive = this.#instances.filter((belfry) => !this.#crashed.has(belfry))
    await this.settled(Promise.all(alive.map((belfry) => belfry.stop({ grace: 0 }))), 30_000)
    await this.#setup.close()
  }
}

type Behaviour = (id: string, sentence: string, test: (bed: TestBed) => Promise<void>) => void

/** Declares the behaviours of one document, for every store. */
export function behaviours(document: string, declare: (behaviour: Behaviour) => void): void {
  for (const kind of storeKinds) {
    describe(`${document} (${kind.name})`, () => {
      declare((id, sentence, test) => {
        it(`${id} ${sentence}`, async () => {
          const setup = await kind.open()
          const bed = new TestBed(setup, await setup.handle())
          try {
            await test(bed)
          } finally {
            await bed.close()
          }
        })
      })
    })
  }
}

function skewed(clock: Clock, skewMs: number): Clock {
  return skewMs === 0 ? clock : { ...clock, now: () => clock.now() + skewMs }
}

function recorder(lines: LogLine[]): Logger {
  const at = (level: LogLine['level']) => (fields: object, message: string) =>
    void lines.push({ level, message, fields })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
