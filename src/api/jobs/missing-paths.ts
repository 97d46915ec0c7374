import type { Json } from '../../core/checks/json.js'
import { quote } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import { nearest } from '../../core/names/nearest.js'
import { hasPath, type KeyRule } from '../../core/runs/key.js'

/** The most paths that are remembered, because a caller of the service can invent jobs. */
const MAX_PATHS = 10_000

/** Warns once of each path in `exclusive.by` that no payload of the job has had yet: it may be mistyped. */
export class MissingPaths {
  readonly #log: Logger
  /** Paths that a payload has had, or that the log has named. */
  readonly #done = new Set<string>()

  constructor(log: Logger) {
    this.#log = log
  }

  check(job: string, { by }: KeyRule, payload: Json): void {
    if (by === undefined || by === 'code') return
    for (const path of by) this.#checkPath(job, path, payload)
  }

  #checkPath(job: string, path: string, payload: Json): void {
    const name = `${job}\n${path}`
    if (this.#done.has(name) || this.#done.size >= MAX_PATHS) return
    this.#done.add(name)
    if (hasPath(payload, path)) return
    const [first = ''] = path.split('.')
    const keys = typeof payload === 'object' && payload !== null ? Object.keys(payload) : []
    const meant = nearest(first, keys)
    const hint = meant === undefined || meant === first ? '' : ` (did you mean ${quote(meant)}?)`
    this.#log.warn(
      { job, path },
      `the payload of job ${quote(job)} has no ${quote(path)}${hint}: that part of its exclusive key is null, so all runs without it share one key`,
    )
  }
}
