import { once } from 'node:events'
import { closeSync, createWriteStream, existsSync, openSync, readSync, statSync, truncateSync } from 'node:fs'
import type { Command } from 'commander'
import { BelfryError, failure, quote } from '../core/errors.js'
import { type Desk, type Flags, onOperator, operate } from './operator/on-operator.js'

interface ExportFlags extends Flags {
  readonly prefix?: string
  readonly to?: string
  readonly resume?: boolean
}

export function exportCommand(command: Command): void {
  command
    .option('--prefix <text>', 'only ids that begin with this')
    .option('--to <file>', 'write there instead of to standard output')
    .option('--resume', 'with --to: go on where it broke off')
  onOperator(command)
    .addHelpText(
      'after',
      `
A line of JSON each, in order of id, as belfry import takes them. Pauses are
not among it. -o says nothing here.

Examples:
  belfry export > schedules.jsonl
  belfry export --prefix billing/ --to billing.jsonl
  belfry export --to schedules.jsonl --resume`,
    )
    .action((flags: ExportFlags) => operate(flags, (desk) => exportTo(desk, flags)))
}

async function exportTo({ client, out }: Desk, { prefix, to, resume = false }: ExportFlags): Promise<void> {
  const { interruption } = await import('./terminal/interruption.js')
  const { ProgressBar } = await import('./terminal/progress-bar.js')
  if (resume && to === undefined) throw failure('OPTION_INVALID', '--resume needs the file: --to FILE')
  const after = resume && to !== undefined && existsSync(to) ? lastId(to) : undefined
  if (resume) out.note(after === undefined ? 'nothing of it was written yet' : `going on after ${quote(after)}`)
  const stream = await client.schedules.export({
    ...(prefix === undefined ? {} : { prefix }),
    ...(after === undefined ? {} : { after }),
  })
  const file = to === undefined ? process.stdout : createWriteStream(to, { flags: after === undefined ? 'w' : 'a' })
  const bar = new ProgressBar()
  let lines = 0
  const { signal, over } = interruption()
  try {
    for await (const bytes of stream as unknown as AsyncIterable<Uint8Array>) {
      for (const byte of bytes) if (byte === NEWLINE) lines += 1
      if (!file.write(bytes)) await once(file, 'drain')
      bar.show(undefined, `${lines} schedules`)
      signal.throwIfAborted()
    }
  } catch (error) {
    bar.clear()
    if (to !== undefined) out.note(`it broke off after ${lines} schedules: with --resume it goes on from there`)
    throw signal.aborted ? new BelfryError('INTERRUPTED', 'interrupted') : error
  } finally {
    over()
  }
  bar.clear()
  if (to === undefined) return
  file.end()
  await once(file, 'finish')
  out.note(`${lines} schedules written to ${quote(to)}`)
}

const NEWLINE = 0x0a
const MAX_LINE = 1_048_576

/** The id of the last whole line; what was cut off after it is taken away. Undefined when there is none. */
function lastId(path: string): string | undefined {
  const { size } = statSync(path)
  const tail = Buffer.alloc(Math.min(size, 2 * MAX_LINE))
  const file = openSync(path, 'r')
  readSync(file, tail, 0, tail.length, size - tail.length)
  closeSync(file)
  const end = tail.lastIndexOf(NEWLINE)
  truncateSync(path, size - tail.length + end + 1)
  if (end === -1) return undefined
  const line = tail.subarray(tail.lastIndexOf(NEWLINE, end - 1) + 1, end).toString('utf8')
  try {
    const { id } = JSON.parse(line) as { readonly id?: unknown }
    if (typeof id === 'string') return id
  } catch {
    // Said below.
  }
  throw failure('OPTION_INVALID', `${quote(path)} is no export of schedules: its last line has no id`)
}
