/** Changes several schedules: each by its id, or all under a prefix. */
import type { Command } from 'commander'
import { type BelfryClient, ServiceError } from '../../client/index.js'
import { failure } from '../../core/errors.js'
import { exitCodeOf, printError } from '../terminal/exit.js'
import type { Column } from '../terminal/table.js'
import { missingSchedule } from './missing.js'
import { changeMany } from './operation.js'
import type { CommandContext } from './with-client.js'

export interface ManyFlags {
  readonly prefix?: string
}

export interface Outcome {
  readonly id: string
  readonly outcome: string
}

/** The maximum of concurrent requests. */
const AT_ONCE = 8
const NONE = 'there are no such schedules'

export function withIds(command: Command, what: string): Command {
  return command
    .argument('[id...]', 'ids of schedules')
    .option('--prefix <text>', `${what} all whose id begins with this`)
}

/** Changes each schedule by its id; by `operation`, the service changes all under the prefix. */
export async function eachOrOperation(
  context: CommandContext,
  ids: readonly string[],
  { prefix, note }: ManyFlags & { readonly note?: string },
  operation: { readonly kind: 'pause-schedules' | 'resume-schedules'; readonly changed: string },
  change: (id: string) => Promise<Outcome>,
): Promise<void> {
  if (prefix === undefined || ids.length > 0) {
    return eachSchedule(context, ids, prefix === undefined ? {} : { prefix }, change)
  }
  const asked = { kind: operation.kind, prefix, ...(note === undefined ? {} : { note }) }
  await changeMany(context, asked, operation.changed, NONE)
}

export async function eachSchedule(
  { client, out }: CommandContext,
  ids: readonly string[],
  { prefix }: ManyFlags,
  change: (id: string) => Promise<Outcome>,
): Promise<void> {
  if ((ids.length === 0) === (prefix === undefined)) {
    throw failure('OPTION_INVALID', 'give either ids of schedules, or --prefix')
  }
  const found = prefix === undefined ? ids : await idsUnder(client, prefix)
  const results: Outcome[] = []
  let failed = 0
  const queue = found.values()
  const work = async () => {
    for (const id of queue) {
      try {
        results.push(await change(id))
      } catch (error) {
        failed += 1
        const isMissing = error instanceof ServiceError && error.code === 'SCHEDULE_NOT_FOUND'
        const shown = isMissing ? await missingSchedule(client, id) : error
        if (found.length === 1) throw shown
        printError(shown)
        process.exitCode = exitCodeOf(shown)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  const places = new Map(found.map((id, at) => [id, at]))
  results.sort((one, other) => (places.get(one.id) ?? 0) - (places.get(other.id) ?? 0))
  await out.list(results, COLUMNS, NONE)
  if (failed > 0) out.note(`${failed} of ${found.length} could not be changed`)
}

async function idsUnder(client: BelfryClient, prefix: string): Promise<readonly string[]> {
  const ids: string[] = []
  for await (const { id } of client.schedules.all({ prefix, limit: 1_000 })) ids.push(id)
  return ids
}

const COLUMNS: readonly Column<Outcome>[] = [
  { title: 'id', cell: ({ id }) => id, least: 20 },
  { title: 'outcome', cell: ({ outcome }) => outcome },
]
