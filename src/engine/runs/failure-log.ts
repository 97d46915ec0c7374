/** Logs failed attempts: those that end their run as errors, those that are tried again as info. */
import type { Clock } from '../../core/clock.js'
import { type ErrorRecord, quote } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import type { ClaimedRun } from '../../core/store.js'
import type { Events } from '../events.js'
import { LineLimit } from './line-limit.js'

export class FailureLog {
  readonly #log: Logger
  readonly #final: LineLimit
  readonly #retried: LineLimit

  constructor({ clock, log, events }: { readonly clock: Clock; readonly log: Logger; readonly events: Events }) {
    this.#log = log
    this.#final = new LineLimit(clock, (target, more) => {
      log.error({ target, more }, `${more} more runs of ${target} have failed for good since the last line about them`)
    })
    this.#retried = new LineLimit(clock, (target, more) => {
      log.info({ target, more }, `${more} more attempts of ${target} have failed since the last line about them`)
    })
    events.on('run:failed', ({ run, error }) => this.#failed(run, error))
    events.on('run:retrying', ({ run, error, delayMs }) => this.#retrying(run, error, delayMs))
  }

  close(): void {
    this.#final.close()
    this.#retried.close()
  }

  #failed(run: ClaimedRun, error: ErrorRecord): void {
    const target = targetOf(run)
    if (!this.#final.allows(target)) return
    this.#log.error(
      fieldsOf(run, error),
      `run ${run.id} of ${target} has failed for good at attempt ${run.attempt}: ${error.message}`,
    )
  }

  #retrying(run: ClaimedRun, error: ErrorRecord, delayMs: number): void {
    const target = targetOf(run)
    if (!this.#retried.allows(target)) return
    this.#log.info(
      { ...fieldsOf(run, error), delayMs },
      `attempt ${run.attempt} of run ${run.id} of ${target} has failed and is tried again in ${Math.round(delayMs)} ms: ${error.message}`,
    )
  }
}

function targetOf({ target }: ClaimedRun): string {
  return 'job' in target ? `job ${quote(target.job)}` : `sink ${quote(target.sink)}`
}

/** A receiver's answer may hold users' data, so `excerpt` stays out of the log. */
function fieldsOf(run: ClaimedRun, { excerpt: _, ...err }: ErrorRecord): object {
  const { id, schedule, attempt, target } = run
  const name = 'job' in target ? { job: target.job } : { sink: target.sink }
  return { run: id, attempt, ...name, ...(schedule === undefined ? {} : { schedule }), err }
}
