import { createHash } from 'node:crypto'
import { accessSync, constants, createReadStream, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { addImported } from '../../client/import-lines.js'
import type { ImportResult } from '../../client/index.js'
import { BelfryError, failure } from '../../core/errors.js'
import { type CommandContext, type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { EXIT } from '../terminal/exit.js'
import { quotePath } from '../terminal/quote-path.js'

interface ImportFlags extends Flags {
  readonly resume?: boolean
  readonly name?: string
}

export function importCommand(command: Command): void {
  command
    .argument('<file>', 'lines of JSON, as belfry export writes them; - is standard input')
    .option('--resume', 'resume an interrupted import')
    .option('--name <text>', 'name of the import, for --resume (the file)')
  withClientOptions(command)
    .addHelpText(
      'after',
      `
Invalid lines are reported by number, and the others are written; it then exits
with 1. Importing the same lines again is safe.

Examples:
  belfry import schedules.jsonl
  belfry import schedules.jsonl --resume
  zcat schedules.gz | belfry import - --name nightly`,
    )
    .action((file: string, flags: ImportFlags) => withClient(flags, (context) => importFile(context, file, flags)))
}

async function importFile(
  { client, out }: CommandContext,
  file: string,
  { resume = false, name }: ImportFlags,
): Promise<void> {
  const { ProgressBar } = await import('../terminal/progress-bar.js')
  const { interruption } = await import('../terminal/interruption.js')
  const { lineParts } = await import('../operator/line-parts.js')
  const size = sizeOf(file)
  const importName = name ?? nameOf(file)
  const progress = resume ? await client.schedules.importProgress(importName) : undefined
  const first = progress?.nextLine ?? 1
  if (resume) out.note(first === 1 ? 'nothing has been imported yet' : `resuming at line ${first}`)
  const bar = new ProgressBar()
  let total: ImportResult = { taken: 0, created: 0, updated: 0, unchanged: 0, refused: 0, nextLine: first, errors: [] }
  const { signal, release } = interruption()
  try {
    for await (const { text, share } of lineParts(bytesOf(file), size, first)) {
      const part = await client.schedules.importPart(text, { name: importName, firstLine: total.nextLine, signal })
      bar.clear()
      for (const error of part.errors) out.note(`line ${error.line}: ${error.message}`)
      if (part.errors.length < part.refused) out.note(`… and ${part.refused - part.errors.length} more`)
      total = addImported(total, part)
      bar.show(share, `${total.nextLine - 1} lines`)
      signal.throwIfAborted()
    }
  } catch (error) {
    bar.clear()
    out.note(`interrupted after line ${total.nextLine - 1}: --resume continues from there`)
    throw signal.aborted ? new BelfryError('INTERRUPTED', 'interrupted') : error
  } finally {
    release()
  }
  bar.clear()
  const { errors: _, ...counts } = total
  out.one(counts, () => [
    `${total.created} created, ${total.updated} updated, ${total.unchanged} unchanged, ${total.refused} refused`,
  ])
  if (total.refused > 0) process.exitCode = EXIT.failure
}

function bytesOf(file: string): AsyncIterable<Buffer> {
  return file === '-' ? process.stdin : createReadStream(file, { highWaterMark: 1_048_576 })
}

/** The file's size; undefined if it is unknown, as for a pipe. Throws if the file cannot be read. */
function sizeOf(file: string): number | undefined {
  if (file === '-') return undefined
  const unreadable = (why: string) => failure('OPTION_INVALID', `the file ${quotePath(file)} cannot be read: ${why}`)
  try {
    accessSync(file, constants.R_OK)
  } catch (error) {
    throw unreadable(error instanceof Error ? error.message : String(error))
  }
  const found = statSync(file)
  if (found.isDirectory()) throw unreadable('it is a folder')
  return found.isFile() ? found.size : undefined
}

/** Names the import by the file's path, size and modification time, so that --resume does not go on with a changed file. */
function nameOf(file: string): string {
  if (file === '-') return 'stdin'
  const { size = 0, mtimeMs = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {}
  const identity = JSON.stringify([resolve(file), size, mtimeMs])
  return `file-${createHash('sha256').update(identity).digest('hex').slice(0, 32)}`
}
