/** A slot in the cluster, which one instance after another occupies. Each instance is a process with its own faults. */
import type { Job } from '../../src/api/jobs/job.js'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { type Clock, sleep } from '../../src/core/clock.js'
import type { Logger } from '../../src/core/logger.js'
import type { HandlerContext } from '../../src/engine/definitions.js'
import { type FaultRates, faultyStore } from '../../src/testing/faulty-store.js'
import { SimulatedProcess } from '../../src/testing/simulated-process.js'
import { OUT_OF_REACH, type SimulatedCluster } from './cluster.js'
import type { JobSettings, Payload } from './settings.js'

type State = 'empty' | 'starting' | 'up' | 'held' | 'stopping'

const OBSERVED = ['run:succeeded', 'run:failed', 'run:retrying', 'run:cancelled', 'run:released', 'run:stale'] as const

export class InstanceSlot {
  readonly jobs = new Map<string, Job<Payload | undefined>>()
  readonly #cluster: SimulatedCluster
  readonly #number: number
  #life = 0
  #state: State = 'empty'
  #belfry: Belfry | undefined
  #simulated: SimulatedProcess | undefined
  /** Until this instant, no call of this slot's instance reaches the store. */
  cutOffUntil = 0

  constructor(cluster: SimulatedCluster, number: number) {
    this.#cluster = cluster
    this.#number = number
  }

  get name(): string {
    return `slot${this.#number}.${this.#life}`
  }

  get state(): State {
    return this.#state
  }

  /** The instance, while it is running. */
  get belfry(): Belfry | undefined {
    return this.#state === 'up' ? this.#belfry : undefined
  }

  /** Starts a new process. */
  open(): void {
    if (this.#state !== 'empty') return
    const { chronicle } = this.#cluster
    this.#life += 1
    this.#state = 'starting'
    const simulated = this.#line()
    const belfry = this.#instance(simulated)
    this.#simulated = simulated
    this.#belfry = belfry
    chronicle.note(`${this.name} starts`)
    void this.#start(belfry, simulated.clock)
  }

  crash(): void {
    if (this.#state === 'empty') return
    this.#cluster.chronicle.note(`${this.name} crashes`)
    this.#simulated?.kill()
    this.#cluster.stopping.delete(this.name)
    this.#state = 'empty'
  }

  hold(): void {
    if (this.#state !== 'up') return
    this.#cluster.chronicle.note(`${this.name} is held`)
    this.#simulated?.suspend()
    this.#state = 'held'
  }

  resume(): void {
    if (this.#state !== 'held') return
    this.#cluster.chronicle.note(`${this.name} is resumed`)
    this.#state = 'up'
    this.#simulated?.resume()
  }

  stop(graceMs: number): void {
    const belfry = this.belfry
    const name = this.name
    if (belfry === undefined) return
    const { chronicle, stopping } = this.#cluster
    chronicle.note(`${name} stops, grace ${graceMs} ms`)
    this.#state = 'stopping'
    const stopped = belfry.stop({ grace: graceMs }).then(
      () => {
        chronicle.note(`${name} has stopped`)
        stopping.delete(name)
        if (this.name === name) this.#state = 'empty'
      },
      (error: unknown) => chronicle.violated('an instance can always be stopped', `${name}: ${String(error)}`, name),
    )
    stopping.set(name, stopped)
  }

  async #start(belfry: Belfry, clock: Clock): Promise<void> {
    while (this.#belfry === belfry && this.#state === 'starting') {
      try {
        await belfry.start()
        if (this.#belfry === belfry && this.#state === 'starting') this.#state = 'up'
        return
      } catch (error) {
        this.#cluster.noteFailure(`${this.name} could not start`, error)
        await sleep(clock, 500)
      }
    }
  }

  #line(): SimulatedProcess {
    const { store, clock, random, settings } = this.#cluster
    const current = () => (clock.now() < this.cutOffUntil ? OUT_OF_REACH : this.#cluster.faults())
    const faults = new Proxy<FaultRates>({}, { get: (_, name) => Reflect.get(current(), name) as unknown })
    const skewMs = random.integer(-settings.skewMs, settings.skewMs)
    return new SimulatedProcess(
      faultyStore(store, { random: this.#cluster.faultRandom, clock, faults }),
      skewMs === 0 ? clock : clock.skewed(skewMs),
    )
  }

  #instance({ store, clock }: SimulatedProcess): Belfry {
    const { random, settings, chronicle } = this.#cluster
    const belfry = createBelfry({
      ...this.#cluster.options(),
      ...{ store, clock, concurrency: random.integer(2, 10), logger: this.#logger() },
      ...this.#cluster.specialty(this.#number),
    })
    for (const job of settings.jobs) {
      this.jobs.set(job.name, belfry.job<Payload>(job.name, { ...job.options, run: this.#handler(job, clock) }))
    }
    for (const event of OBSERVED) {
      belfry.on(event, ({ run: { id, token } }) =>
        chronicle.write({ kind: 'emitted', slot: this.name, event, run: id, token }),
      )
    }
    return belfry
  }

  #handler({ minMs, maxMs, fails, obeys }: JobSettings, clock: Clock) {
    const { chronicle, faultRandom } = this.#cluster
    const slot = this.name
    return async ({ run, event, token, signal, payload }: HandlerContext<Payload>) => {
      const fact = { slot, run: run.id, event: event.id, token, key: run.key, obeys }
      chronicle.write({ kind: 'began', ...fact })
      const throws = faultRandom.chance(fails)
      await sleep(clock, faultRandom.integer(minMs, maxMs), obeys ? signal : undefined)
      const aborted = obeys && signal.aborted
      chronicle.write({ kind: 'returned', ...fact, how: aborted ? 'aborted' : throws ? 'threw' : 'done' })
      if (aborted) throw signal.reason
      if (throws) throw new Error('bad faultRandom')
      return payload.n
    }
  }

  #logger(): Logger {
    const { chronicle } = this.#cluster
    const write = (fields: object, message: string) => chronicle.note(`${this.name}: ${message} ${text(fields)}`)
    return {
      debug() {},
      info: write,
      warn: write,
      error: (fields, message) => {
        write(fields, message)
        if (isOfHandlers(fields)) return
        chronicle.violated('no internal error is logged', `${this.name}: ${message} ${text(fields)}`, this.name)
      },
    }
  }
}

/** Handlers of the simulation fail on purpose, and some of their runs are given up. */
function isOfHandlers(fields: object): boolean {
  return 'run' in fields || 'more' in fields || 'lost' in fields
}

function text(fields: object): string {
  const { err, ...rest } = fields as { err?: { message?: string } }
  return JSON.stringify({ ...rest, ...(err?.message === undefined ? {} : { err: err.message }) })
}
