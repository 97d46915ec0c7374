/** What planners know of definitions: many schedules share one, so each is read once. */
import { randomUUID } from 'node:crypto'
import type { Overlap } from '../../../core/policies.js'
import { targetOptions } from '../../../core/runs/stored-text.js'
import { keyElsewhere } from '../cluster/shards.js'
import type { Server } from '../connection/server.js'
import { type MadeRun, madeRun } from '../runs/run-codec.js'
import { type Body, toBody } from './schedule-codec.js'

/** How many are remembered. */
const CAPACITY = 20_000

export interface Known {
  readonly body: Body
  readonly overlap: Overlap
  readonly template: Template
}

/** What all runs of a schedule have in common. */
export interface Template {
  readonly run: MadeRun
  readonly options: string
}

export class Definitions {
  /** Names this planner among those that plan at the same time. */
  readonly self = randomUUID()
  readonly #known = new Map<number, Map<string, Known>>()

  /** A definition by its text, in a shard: whether its key is elsewhere depends on that. */
  of(server: Server, shard: number, text: string, overlap: Overlap): Known {
    const own = this.#known.get(shard) ?? new Map<string, Known>()
    this.#known.set(shard, own)
    const known = own.get(text)
    if (known !== undefined && known.overlap === overlap) return known
    const body = toBody(text)
    const { target, priority, keep, key } = body
    const made = { origin: 'tick', target, priority, keep, ...(key === undefined ? {} : { key }) } as const
    const template = {
      run: madeRun(made, keyElsewhere(server, shard, key)),
      options: targetOptions(target) ?? '',
    }
    const read = { body, overlap, template }
    if (own.size >= CAPACITY) own.clear()
    own.set(text, read)
    return read
  }
}
