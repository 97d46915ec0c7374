/**
 * Work that may take long, as an operation of the service: it goes on there, and the command asks how far it is. Ctrl-C cancels
 * it. What it has done stays done.
 */
import { type NewOperation, type OperationResource, ServiceError, type WaitOptions } from '../../client/index.js'
import { BelfryError } from '../../core/errors.js'
import { messageOf } from '../terminal/exit.js'
import { interruption } from '../terminal/interruption.js'
import { ProgressBar } from '../terminal/progress-bar.js'
import type { CommandContext } from './with-client.js'

/** Starts an operation on many runs or schedules, waits for its end, and prints how many were changed. */
export async function changeMany(context: CommandContext, asked: NewOperation, changed: string, none: string) {
  const { client, out } = context
  const ended = await watched(context, async (options) => {
    const started = await client.operations.start(asked)
    options.onProgress(started)
    return client.operations.wait(started.id, options)
  })
  const { state, counts, error } = ended
  const { changed: count = 0, refused = 0 } = counts
  if (refused > 0) out.noteAfter(`${refused} had changed state before they could be changed`)
  if (state === 'succeeded') {
    if (count === 0 && out.format === 'table') out.note(none)
    else out.one(ended, () => [`${count} ${changed}`])
    out.notes()
    return
  }
  out.note(`${count} ${changed}`)
  const detail = error?.message ?? `the operation was ${state}; give the same command again for the rest`
  throw new ServiceError({ status: 409, code: error?.code ?? 'OPERATION_ENDED', detail })
}

/** Shows the progress of an operation, and cancels it on Ctrl-C. */
export async function watched<Result>(
  { client, out }: CommandContext,
  work: (options: Required<WaitOptions>) => Promise<Result>,
): Promise<Result> {
  const bar = new ProgressBar()
  const { signal, release } = interruption()
  let last: OperationResource | undefined
  const onProgress = (operation: OperationResource) => {
    last = operation
    bar.show(undefined, countsText(operation))
  }
  try {
    return await work({ signal, onProgress })
  } catch (error) {
    if (!signal.aborted) throw error
    bar.clear()
    if (last !== undefined) out.note(await cancelled(client, last))
    throw new BelfryError('INTERRUPTED', 'interrupted')
  } finally {
    bar.clear()
    release()
  }
}

/** Cancels the operation, and says how far it got; or that it goes on. */
async function cancelled({ operations }: CommandContext['client'], { id }: OperationResource): Promise<string> {
  try {
    await operations.cancel(id)
    const ended = await operations.wait(id)
    return `operation ${id} ${ended.state}: ${countsText(ended)}`
  } catch (error) {
    return `operation ${id} could not be cancelled and goes on in the service: ${messageOf(error)}`
  }
}

function countsText({ counts }: OperationResource): string {
  return (
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ') || 'nothing changed yet'
  )
}
