/** The simulation's record of all events, in order. The invariants are checked against it. */
import type { Clock } from '../../src/core/clock.js'
import type { RunKey } from '../../src/core/runs/key.js'
import type { Keep, Origin, Outcome, Run, Target } from '../../src/core/runs/run.js'
import type { SkipRange } from '../../src/core/schedules/plan.js'
import type { ScheduleDefinition } from '../../src/core/schedules/schedule.js'

export type Fact =
  | PutFact
  | Of<'paused' | 'resumed' | 'removed', { readonly schedule: string }>
  | Of<'pruned', { readonly schedule: string; readonly cursor: number }>
  | { readonly kind: 'frozen' | 'thawed' }
  | EnqueuedFact
  | ClaimedFact
  | Of<'settled' | 'refused', Settlement>
  | Of<'began' | 'returned', Execution>
  | EmittedFact
  | NoteFact

/** A union with one member for each kind, all with the same body. */
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

/** The store's answer to a settlement. */
interface Settlement {
  readonly run: string
  readonly token: number
  readonly outcome: Outcome['kind']
}

/** An execution as its handler saw it. */
interface Execution {
  readonly slot: string
  readonly run: string
  readonly event: string
  readonly token: number
  readonly key: RunKey | undefined
  /** Whether the handler ends as soon as its signal fires. */
  readonly obeys: boolean
  readonly how?: 'done' | 'threw' | 'aborted'
}

interface EmittedFact {
  readonly kind: 'emitted'
  readonly slot: string
  readonly event: string
  readonly run: string
  readonly token: number
}

/** A line for the report: a fault, an operator's action or a log line. */
interface NoteFact {
  readonly kind: 'note'
  readonly text: string
}

/** When an event happened, and its position in the order of all events. */
export interface Position {
  readonly at: number
  readonly order: number
}

export type Entry = Fact & Position
export type EntryOf<Kind extends Fact['kind']> = Extract<Entry, { readonly kind: Kind }>

export interface Violation {
  readonly invariant: string
  readonly text: string
  /** Runs, schedules and keys whose lines the report shows. */
  readonly about: readonly string[]
}

export class Chronicle {
  readonly violations: Violation[] = []
  /** Every schedule that was ever put. */
  readonly schedules = new Set<string>()
  /** Runs and skips that the store has pruned. */
  readonly prunedRuns: Run[] = []
  readonly prunedSkips: { readonly schedule: string; readonly range: SkipRange }[] = []
  /** Runs that an operator cancelled or retried, which changes their order. */
  readonly touched = new Set<string>()
  /** Cancelled runs, as they were before the cancel. */
  readonly cancelled: Run[] = []
  readonly prunes: boolean
  readonly #clock: Clock
  readonly #entries: Entry[] = []
  #order = 0

  constructor(
    clock: Clock,
    /** Whether history is so short that pruned runs must be kept here. */
    prunes: boolean,
  ) {
    this.#clock = clock
    this.prunes = prunes
  }

  /** An operation takes its position when the store executes it, and writes its entry at that position later. */
  nextPosition(): Position {
    this.#order += 1
    return { at: this.#clock.now(), order: this.#order }
  }

  write(fact: Fact, position: Position = this.nextPosition()): void {
    if (fact.kind === 'put') this.schedules.add(fact.schedule)
    this.#entries.push({ ...fact, ...position })
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
