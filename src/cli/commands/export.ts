import { once } from 'node:events'
import { closeSync, existsSync, openSync, readSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { BelfryError, failure, quote } from '../../core/errors.js'
import { type Desk, type Flags, onOperator, operate } from '../operator/on-operator.js'
import { quotePath } from '../terminal/quote-path.js'

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
  if (resume && to === undefined) throw failure('OPTION_INVALID', '--resume needs the file: --to FILE')
  const after = resume && to !== undefined && existsSync(to) ? lastId(to) : undefined
  if (resume) out.note(after === undefined ? 'nothing of it was written yet' : `going on after ${quote(after)}`)
  const stream = await client.schedules.export({
    ...(prefix === undefined ? {} : { prefix }),
    ...(after === undefined ? {} : { after }),
  })
  if (to === undefined) {
    for await (const bytes of chunksOf(stream)) if (!process.stdout.write(bytes)) await once(process.stdout, 'drain')
    return
  }
  const file = fileErrors(to, () => openSync(to, after === undefined ? 'w' : 'a'))
  try {
    const lines = await writeLines(stream, (bytes) => fileErrors(to, () => writeFileSync(file, bytes)), out)
    out.note(`${lines} schedules written to ${quotePath(to)}`)
  } finally {
    closeSync(file)
  }
}

async function writeLines(
  stream: ReadableStream<Uint8Array>,
  write: (bytes: Uint8Array) => void,
  out: Desk['out'],
): Promise<number> {
  const { interruption } = await import('../terminal/interruption.js')
  const { ProgressBar } = await import('../terminal/progress-bar.js')
  const bar = new ProgressBar()
  const { signal, over } = interruption()
  let lines = 0
  try {
    for await (const bytes of chunksOf(stream)) {
      write(bytes)
      for (const byte of bytes) if (byte === NEWLINE) lines += 1
      bar.show(undefined, `${lines} schedules`)
      signal.throwIfAborted()
    }
    bar.clear()
    return lines
  } catch (error) {
    bar.clear()
    out.note(`it broke off after ${lines} schedules: with --resume it goes on from there`)
    throw signal.aborted ? new BelfryError('INTERRUPTED', 'interrupted') : error
  } finally {
    over()
  }
}

async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(brokenOff)
      if (done) return
      yield value
    }
  } finally {
    // Whoever sends it would wait for ever for somebody to read the rest.
    await reader.cancel().catch(() => {})
  }
}

function brokenOff(error: unknown): never {
  if (error instanceof BelfryError) throw error
  throw failure('STORE_UNREACHABLE', 'the service does not answer any more: not all of it has come', { cause: error })
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
  if (end === -1 && (size === 0 || tail.toString('utf8', 0, 6) === '{"id":')) return undefined
  const id = idIn(tail.subarray(tail.lastIndexOf(NEWLINE, end - 1) + 1, end).toString('utf8'))
  if (id === undefined) {
    throw failure('OPTION_INVALID', `${quotePath(path)} is no export of schedules: its last line has no id`)
  }
  truncateSync(path, size - tail.length + end + 1)
  return id
}

function idIn(line: string): string | undefined {
  try {
    const { id } = JSON.parse(line) as { readonly id?: unknown }
    return typeof id === 'string' ? id : undefined
  } catch {
    return undefined
  }
}

function fileErrors<Result>(path: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw failure('OPTION_INVALID', `the file ${quotePath(path)} cannot be written: ${why}`)
  }
}
