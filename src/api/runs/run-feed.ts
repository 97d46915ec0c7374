/**
 * Reports changes of runs of all processes, and stores nothing for that. On the store's hints, and every second, the
 * feed reads the newest runs down to those that it knows, and reads unfinished ones again.
 *
 * The feed reports the state at the time of reading: a run that goes through three states between two reads is reported
 * once. Each read is bounded: when more runs changed than one read takes, the feed sends `gap`, and listeners reload
 * their lists.
 */
import { type Clock, sleep } from '../../core/clock.js'
import { isFinished, type Run } from '../../core/runs/run.js'
import type { Store } from '../../core/store.js'

export type RunEvent =
  | { readonly kind: 'run'; readonly run: Run; readonly at: number }
  /** A reported run has ended and left no history. */
  | { readonly kind: 'gone'; readonly id: string; readonly at: number }
  /** Overflow: some changes were not reported. */
  | { readonly kind: 'gap'; readonly at: number }

type Listener = (event: RunEvent) => void

const LOOK_MS = 1_000
/** Reads are at least this far apart, however many hints arrive. */
const PAUSE_MS = 250
const PAGE = 100
const MAX_NEW = 1_000
const MAX_KNOWN = 5_000
/** The most unfinished runs that one read looks up by id, beside the newest runs. */
const MAX_ASKED = 100
/** How far a read goes back before the newest known run: runs may become visible late, and not in the order of creation. */
const OVERLAP_MS = 5_000

export class RunFeed {
  readonly #store: Store
  readonly #clock: Clock
  readonly #listeners = new Set<Listener>()
  /** The reported state of each run, oldest first. */
  readonly #known = new Map<string, string>()
  readonly #unfinished = new Set<string>()
  #newestAt = 0
  #primed: Promise<void> | undefined
  #stopped = new AbortController()

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Resolves when the feed reports all later changes. The returned function ends the watch. */
  async watch(listener: Listener): Promise<() => void> {
    this.#listeners.add(listener)
    this.#primed ??= this.#start()
    const end = () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#stop()
    }
    try {
      await this.#primed
    } catch (error) {
      end()
      throw error
    }
    return end
  }

  /** The runs that changed since an instant, oldest first; undefined when they are too many. */
  async since(at: number): Promise<readonly Run[] | undefined> {
    const { runs, isWhole } = await this.#newest((page) => isBefore(page, at - OVERLAP_MS))
    if (!isWhole) return undefined
    const changedAt = (run: Run) => Math.max(run.createdAt, run.startedAt ?? 0, run.finishedAt ?? 0)
    return runs.filter((run) => changedAt(run) >= at - OVERLAP_MS).reverse()
  }

  async #start(): Promise<void> {
    const stopped = new AbortController()
    this.#stopped = stopped
    const { runs } = await this.#newest(() => true)
    const running = await this.#store.runs.list({ states: ['running'], limit: PAGE })
    for (const run of [...running.items, ...runs]) this.#learn(run)
    void this.#loop(stopped.signal)
  }

  #stop(): void {
    this.#stopped.abort()
    this.#primed = undefined
    this.#known.clear()
    this.#unfinished.clear()
  }

  async #loop(stopped: AbortSignal): Promise<void> {
    let hint = new AbortController()
    const unsubscribe = this.#store.subscribe((wake) => {
      if (wake === 'runs' || wake === 'settled') hint.abort()
    })
    const wakeUp = () => hint.abort()
    stopped.addEventListener('abort', wakeUp)
    while (!stopped.aborted) {
      // The next read tries again; the engine's loops report the outage.
      await this.#read(stopped).catch(() => {})
      await sleep(this.#clock, PAUSE_MS, stopped)
      await sleep(this.#clock, LOOK_MS - PAUSE_MS, hint.signal)
      hint = new AbortController()
    }
    stopped.removeEventListener('abort', wakeUp)
    unsubscribe()
  }

  async #read(stopped: AbortSignal): Promise<void> {
    const at = await this.#store.now()
    const downTo = this.#newestAt - OVERLAP_MS
    const isKnown = (page: readonly Run[]) => page.every(({ id }) => this.#known.has(id))
    const { runs, isWhole } = await this.#newest((page) => isBefore(page, downTo) || isKnown(page))
    if (stopped.aborted) return
    if (!isWhole) this.#send({ kind: 'gap', at })
    for (const run of runs.toReversed()) {
      if (this.#learn(run) && isWhole) this.#send({ kind: 'run', run, at })
    }
    await this.#askAgain(new Set(runs.map(({ id }) => id)), at, stopped)
  }

  async #askAgain(looked: ReadonlySet<string>, at: number, stopped: AbortSignal): Promise<void> {
    const ids = [...this.#unfinished].filter((id) => !looked.has(id)).slice(0, MAX_ASKED)
    const runs = await Promise.all(ids.map((id) => this.#store.runs.get(id)))
    if (stopped.aborted) return
    for (const [place, run] of runs.entries()) {
      const id = ids[place] ?? ''
      if (run === undefined) {
        this.#forget(id)
        this.#send({ kind: 'gone', id, at })
      } else if (this.#learn(run)) this.#send({ kind: 'run', run, at })
    }
  }

  /** Runs, newest first, down to the page for which `isLast` holds; incomplete when there are too many. */
  async #newest(
    isLast: (page: readonly Run[]) => boolean,
  ): Promise<{ readonly runs: readonly Run[]; readonly isWhole: boolean }> {
    const runs: Run[] = []
    let after: { readonly after?: string } = {}
    while (runs.length < MAX_NEW) {
      const { items, next } = await this.#store.runs.list({ limit: PAGE, ...after })
      runs.push(...items)
      if (next === undefined || isLast(items)) return { runs, isWhole: true }
      after = { after: next }
    }
    return { runs, isWhole: false }
  }

  /** Returns whether the state is new. */
  #learn(run: Run): boolean {
    const { id, state, attempt, readyAt, createdAt, cancelRequested = false } = run
    const mark = `${state} ${attempt} ${readyAt} ${cancelRequested}`
    const isNews = this.#known.get(id) !== mark
    this.#known.delete(id)
    this.#known.set(id, mark)
    this.#unfinished.delete(id)
    if (!isFinished(run)) this.#unfinished.add(id)
    this.#newestAt = Math.max(this.#newestAt, createdAt)
    if (this.#known.size > MAX_KNOWN) this.#forget(this.#known.keys().next().value ?? '')
    return isNews
  }

  #forget(id: string): void {
    this.#known.delete(id)
    this.#unfinished.delete(id)
  }

  #send(event: RunEvent): void {
    for (const listener of [...this.#listeners]) listener(event)
  }
}

function isBefore(page: readonly Run[], at: number): boolean {
  return (page.at(-1)?.createdAt ?? 0) < at
}
