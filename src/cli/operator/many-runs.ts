/** Doing something to runs, each by its id or all that match. */
import type { ManyRunsResult, RunSelection } from '../../client/index.js'
import { failure } from '../../core/errors.js'
import { exitCodeOf, printError } from '../terminal/exit.js'
import type { Column } from '../terminal/table.js'
import type { Desk } from './operate.js'
import { filtersOf, type RunFlags } from './run-filters.js'

export interface ManyRunFlags extends RunFlags {
  readonly all?: boolean
}

interface Done {
  readonly id: string
  readonly outcome: string
}

export interface RunChange {
  readonly one: (id: string) => Promise<string>
  readonly many: (meant: RunSelection) => Promise<ManyRunsResult>
  /** What became of each of the many. */
  readonly outcome: string
  /** Which states are meant when nobody says. */
  readonly states: NonNullable<RunSelection['states']>
}

export async function eachRun(
  desk: Desk,
  ids: readonly string[],
  flags: ManyRunFlags,
  change: RunChange,
): Promise<void> {
  const filters = filtersOf(flags)
  const isFiltered = Object.keys(filters).length > 0 || flags.all === true
  if ((ids.length === 0) !== isFiltered) {
    throw failure('OPTION_INVALID', 'say which runs: by their ids, or by filters (--all for every one), one of both')
  }
  const done = isFiltered ? byFilter(desk, filters, change) : byId(ids, change)
  await desk.out.list(done, COLUMNS, 'there are no such runs')
}

async function* byId(ids: readonly string[], { one }: RunChange): AsyncGenerator<Done> {
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

/** A batch at a time; those that come meanwhile are not among them. */
async function* byFilter(
  { out }: Desk,
  filters: RunSelection,
  { many, outcome, states }: RunChange,
): AsyncGenerator<Done> {
  let [cursor, refused]: [string | null, number] = [null, 0]
  do {
    const result: ManyRunsResult = await many({ states, ...filters, ...(cursor === null ? {} : { cursor }) })
    for (const id of result.changed) yield { id, outcome }
    refused += result.refused
    cursor = result.nextCursor
  } while (cursor !== null)
  if (refused > 0) out.noteAfter(`${refused} had moved on meanwhile`)
}

const COLUMNS: readonly Column<Done>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'outcome', cell: ({ outcome }) => outcome },
]
