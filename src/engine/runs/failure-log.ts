/** Logs attempts that fail for good as errors, attempts that are tried again as info, and runs that came too late as warnings. */
import type { Clock } from '../../core/clock.js'
import { type ErrorRecord, quote } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import type { SkipReason } from '../../core/policies.js'
import type { ClaimedRun, SkippedRun } from '../../core/store.js'
import type { Events } from '../events.js'
import { LineLimit } from './line-limit.js'

export class FailureLog {
  readonly #log: Logger
  readonly #final: LineLimit
  readonly #retried: LineLimit
  readonly #skipped: LineLimit

  constructor({ clock, log, events }: { readonly clock: Clock; readonly log: Logger; readonly events: Events }) {
    this.#log = log
    this.#final = new LineLimit(clock, (target, more) => {
      log.error({ target, more }, `${more} more runs of ${target} have failed for good since the last line about them`)
    })
    this.#retried = new LineLimit(clock, (target, more) => {
      log.info({ target, more }, `${more} more attempts of ${target} have failed since the last line about them`)
    })
    this.#skipped = new LineLimit(clock, (target, more) => {
      log.warn({ target, more }, `${more} more runs of ${target} were skipped since the last line about them`)
    })
    events.on('run:skipped', ({ run }) => this.#skip(run))
    events.on('run:failed', ({ run, error }) => this.#failed(run, error))
    events.on('run:retrying', ({ run, error, delayMs }) => this.#retrying(run, error, delayMs))
  }

  close(): void {
    this.#final.close()
    this.#retried.close()
    this.#skipped.close()
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

  #skip(run: SkippedRun): void {
    const target = targetOf(run)
    const { id, schedule, reason } = run
    const fields = { run: id, ...nameOf(run), ...(schedule === undefined ? {} : { schedule }), reason }
    const why = WHY_SKIPPED[reason]
    // Its author asked for it, with `whenBusy: 'skip'` or by leaving the default of ticks.
    if (why === undefined) this.#log.debug(fields, `run ${id} of ${target} was skipped (${reason})`)
    else if (this.#skipped.allows(target)) {
      this.#log.warn(fields, `run ${id} of ${target} was skipped (${reason}): ${why}`)
    }
  }
}

const WHY_SKIPPED: Readonly<Partial<Record<SkipReason, string>>> = {
  deadline: 'no worker started it before its deadline',
  missed:
    "no worker started it in time, and the schedule's missed policy dropped it; with backlog 'keep' it would wait",
}

function targetOf({ target }: Pick<ClaimedRun, 'target'>): string {
  return 'job' in target ? `job ${quote(target.job)}` : `sink ${quote(target.sink)}`
}

/** A receiver's answer may hold users' data, so `excerpt` stays out of the log. */
function fieldsOf(run: ClaimedRun, { excerpt: _, ...err }: ErrorRecord): object {
  const { id, schedule, attempt } = run
  return { run: id, attempt, ...nameOf(run), ...(schedule === undefined ? {} : { schedule }), err }
}

function nameOf({ target }: Pick<ClaimedRun, 'target'>): object {
  return 'job' in target ? { job: target.job } : { sink: target.sink }
}
