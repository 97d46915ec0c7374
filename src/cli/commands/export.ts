import { once } from 'node:events'
import { closeSync, existsSync, openSync, readSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { BelfryError, failure, quote } from '../../core/errors.js'
import { type CommandContext, type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { cleanText } from '../terminal/clean-text.js'
import { quotePath } from '../terminal/quote-path.js'

interface ExportFlags extends Flags {
  readonly prefix?: string
  readonly to?: string
  readonly resume?: boolean
}

export function exportCommand(command: Command): void {
  command
    .option('--prefix <text>', 'only ids that begin with this')
    .option('--to <file>', 'write to this file instead of standard output')
    .option('--resume', 'with --to: resume an interrupted export')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
One line of JSON for each schedule, in order of id, as belfry import takes them.
Whether a schedule is paused is not exported. -o has no effect here.

Examples:
  belfry export > schedules.jsonl
  belfry export --prefix billing/ --to billing.jsonl
  belfry export --to schedules.jsonl --resume`,
    )
    .action((flags: ExportFlags) => withClient(flags, (context) => exportTo(context, flags)))
}

async function exportTo({ client, out }: CommandContext, { prefix, to, resume = false }: ExportFlags): Promise<void> {
  if (resume && to === undefined) throw failure('OPTION_INVALID', '--resume needs the file: --to FILE')
  const after = resume && to !== undefined && existsSync(to) ? lastId(to) : undefined
  if (resume) out.note(after === undefined ? 'nothing has been written yet' : `resuming after ${quote(after)}`)
  const stream = await client.schedules.export({
    ...(prefix === undefined ? {} : { prefix }),
    ...(after === undefined ? {} : { after }),
  })
  if (to === undefined) {
    const decoder = new TextDecoder()
    for await (const bytes of chunksOf(stream)) {
      const text = cleanText(decoder.decode(bytes, { stream: true }))
      if (!process.stdout.write(text)) await once(process.stdout, 'drain')
    }
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
  out: CommandContext['out'],
): Promise<number> {
  const { interruption } = await import('../terminal/interruption.js')
  const { ProgressBar } = await import('../terminal/progress-bar.js')
  const bar = new ProgressBar()
  const { signal, release } = interruption()
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
    out.note(`interrupted after ${lines} schedules: --resume continues from there`)
    throw signal.aborted ? new BelfryError('INTERRUPTED', 'interrupted') : error
  } finally {
    release()
  }
}

async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(connectionLost)
      if (done) return
      yield value
    }
  } finally {
    // Without cancel() the sender would wait for ever for a reader.
    await reader.cancel().catch(() => {})
  }
}

function connectionLost(error: unknown): never {
  if (error instanceof BelfryError) throw error
  throw failure('STORE_UNREACHABLE', 'the service became unreachable: the export is incomplete', { cause: error })
}

const NEWLINE = 0x0a
const MAX_LINE = 1_048_576

/** The id of the last whole line, after truncating a partial one. Undefined when there is no whole line. */
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
    throw failure('OPTION_INVALID', `${quotePath(path)} is not an export of schedules: its last line has no id`)
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
