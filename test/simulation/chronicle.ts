/** The simulation's own record of what happened, in order. What the invariants say, they say about this. */
import type { Clock } from '../../src/core/clock.js'
import type { RunKey } from '../../src/core/key.js'
import type { SkipRange } from '../../src/core/plan.js'
import type { Keep, Origin, Outcome, Run, Target } from '../../src/core/run.js'
import type { ScheduleDefinition } from '../../src/core/schedule.js'

export type Fact =
  | PutFact
  | Of<'paused' | 'resumed' | 'removed', { readonly schedule: string }>
  | Of<'pruned', { readonly schedule: string; readonly cursor: number }>
  | { readonly kind: 'frozen' | 'thawed' }
  | EnqueuedFact
  | ClaimedFact
  | Of<'settled' | 'refused', Settlement>
  | Of<'began' | 'returned', Execution>
  | ToldFact
  | NoteFact

/** One member of the union for each kind. */
type Of<Kind extends string, Body> = Kind extends string ? Body & { readonly kind: Kind } : never

interface PutFact {
  readonly kind: 'put'
  readonly schedule: string
  readonly outcome: 'created' | 'updated'
  readonly definition: ScheduleDefinition
  readonly cursor: number
}

interface EnqueuedFact {
  readonly kind: 'enqueued'
  readonly run: string
  readonly target: Target
  readonly origin: Origin
  readonly schedule: string | undefined
  readonly key?: RunKey
  readonly keep: Keep
  readonly dueAt: number
}

interface ClaimedFact {
  readonly kind: 'claimed'
  readonly run: string
  readonly origin: Origin
  readonly schedule: string | undefined
  readonly tick: number | undefined
  readonly key: RunKey | undefined
  readonly token: number
  readonly attempt: number
  readonly instance: string | undefined
}

/** What the store answered to a settlement. */
interface Settlement {
  readonly run: string
  readonly token: number
  readonly outcome: Outcome['kind']
}

/** What a handler saw of itself. */
interface Execution {
  readonly seat: string
  readonly run: string
  readonly event: string
  readonly token: number
  readonly key: RunKey | undefined
  /** Whether it ends as soon as its signal fires. */
  readonly obeys: boolean
  readonly how?: 'done' | 'threw' | 'aborted'
}

/** What an instance told its observers. */
interface ToldFact {
  readonly kind: 'told'
  readonly seat: string
  readonly event: string
  readonly run: string
  readonly token: number
}

/** Faults, operators and log lines: what explains the rest. */
interface NoteFact {
  readonly kind: 'note'
  readonly text: string
}

/** Where in the order of things something happened. */
export interface Place {
  readonly at: number
  readonly order: number
}

export type Entry = Fact & Place
export type EntryOf<Kind extends Fact['kind']> = Extract<Entry, { readonly kind: Kind }>

export interface Violation {
  readonly invariant: string
  readonly text: string
  /** Names of runs, schedules and keys by which the lines that matter are found. */
  readonly about: readonly string[]
}

export class Chronicle {
  readonly violations: Violation[] = []
  /** Every schedule that was ever put. */
  readonly schedules = new Set<string>()
  /** What the store has forgotten by now. */
  readonly prunedRuns: Run[] = []
  readonly prunedSkips: { readonly schedule: string; readonly range: SkipRange }[] = []
  /** Runs that an operator cancelled or retried, and so took out of their order. */
  readonly touched = new Set<string>()
  /** Those that ended by it, as they were before. */
  readonly cancelled: Run[] = []
  readonly prunes: boolean
  readonly #clock: Clock
  readonly #entries: Entry[] = []
  #order = 0

  constructor(
    clock: Clock,
    /** Whether history is short, so that what is pruned has to be kept here. */
    prunes: boolean,
  ) {
    this.#clock = clock
    this.prunes = prunes
  }

  /** Taken when something is done; what came of it is written down when it is known. */
  place(): Place {
    this.#order += 1
    return { at: this.#clock.now(), order: this.#order }
  }

  write(fact: Fact, place: Place = this.place()): void {
    if (fact.kind === 'put') this.schedules.add(fact.schedule)
    this.#entries.push({ ...fact, ...place })
  }

  note(text: string): void {
    this.write({ kind: 'note', text })
  }

  violated(invariant: string, text: string, ...about: readonly string[]): void {
    this.violations.push({ invariant, text, about })
  }

  entries(): readonly Entry[] {
    return this.#entries.sort((one, other) => one.order - other.order)
  }

  of<Kind extends Fact['kind']>(...kinds: readonly Kind[]): EntryOf<Kind>[] {
    const wanted: readonly string[] = kinds
    return this.entries().filter((entry): entry is EntryOf<Kind> => wanted.includes(entry.kind))
  }
}
