/** Changes several runs: each by its id, or all that match the filters. */
import type { NewOperation, RunSelection } from '../../client/index.js'
import { failure } from '../../core/errors.js'
import { exitCodeOf, printError } from '../terminal/exit.js'
import type { Column } from '../terminal/table.js'
import { changeMany } from './operation.js'
import { filtersOf, type RunFlags } from './run-filters.js'
import type { CommandContext } from './with-client.js'

export interface ManyRunFlags extends RunFlags {
  readonly all?: boolean
}

interface Outcome {
  readonly id: string
  readonly outcome: string
}

export interface RunChange {
  readonly one: (id: string) => Promise<string>
  /** The operation on all runs that match. */
  readonly kind: Extract<NewOperation['kind'], `${string}-runs`>
  /** What the operation did to the runs that it counts. */
  readonly outcome: string
  /** The states to select without --state. */
  readonly state: NonNullable<RunSelection['state']>
}

const NO_CHOICE = '--state alone means runs of every schedule and job: add --schedule, --job, --to or --key, or --all'

export async function eachRun(
  context: CommandContext,
  ids: readonly string[],
  flags: ManyRunFlags,
  change: RunChange,
): Promise<void> {
  const filters = { ...filtersOf(flags), ...(flags.all === true ? { all: true } : {}) }
  const isFiltered = Object.keys(filters).length > 0
  if ((ids.length === 0) !== isFiltered) {
    throw failure('OPTION_INVALID', 'give either ids of runs, or filters (--all for every run)')
  }
  const { state: _, all = false, ...chosen } = filters
  if (isFiltered && all === Object.keys(chosen).length > 0) {
    throw failure('OPTION_INVALID', all ? '--all means every run: leave it or the filters out' : NO_CHOICE)
  }
  const none = 'there are no such runs'
  if (!isFiltered) return context.out.list(byId(ids, change), COLUMNS, none)
  const { kind, state, outcome } = change
  await changeMany(context, { kind, state, ...filters }, outcome, none)
}

async function* byId(ids: readonly string[], { one }: RunChange): AsyncGenerator<Outcome> {
  for (const id of ids) {
    try {
      yield { id, outcome: await one(id) }
    } catch (error) {
      if (ids.length === 1) throw error
      printError(error)
      process.exitCode = exitCodeOf(error)
    }
  }
}

const COLUMNS: readonly Column<Outcome>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'outcome', cell: ({ outcome }) => outcome },
]
