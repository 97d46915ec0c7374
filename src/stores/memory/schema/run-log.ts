/**
 * All runs in the order of their creation. They lie in blocks that know how many of their runs are in each state, so that
 * finding the few running ones among a million looks at few others.
 */
import type { RunState } from '../../../core/runs/run.js'
import type { RunRecord } from '../runs/run-codec.js'

const SIZE = 512

interface Block {
  readonly runs: (RunRecord | undefined)[]
  readonly counts: Map<RunState, number>
}

export class RunLog {
  readonly #blocks = new Map<number, Block>()

  add(run: RunRecord): void {
    const number = Math.floor(run.order / SIZE)
    const block = this.#blocks.get(number) ?? { runs: [], counts: new Map() }
    this.#blocks.set(number, block)
    block.runs[run.order % SIZE] = run
    count(block, run.state, 1)
  }

  delete(run: RunRecord): void {
    const number = Math.floor(run.order / SIZE)
    const block = this.#blocks.get(number)
    if (block?.runs[run.order % SIZE] !== run) return
    block.runs[run.order % SIZE] = undefined
    count(block, run.state, -1)
    if (block.counts.size === 0) this.#blocks.delete(number)
  }

  /** Counts a run that was in another state before. */
  moved(run: RunRecord, from: RunState): void {
    const block = this.#blocks.get(Math.floor(run.order / SIZE))
    if (block === undefined) return
    count(block, from, -1)
    count(block, run.state, 1)
  }

  /** The runs with an order below `before`, the newest first. With `states`, many of the others are left out. */
  *newestFirst(before: number, states: readonly RunState[] | undefined): Generator<RunRecord, void> {
    for (const number of [...this.#blocks.keys()].reverse()) {
      const block = this.#blocks.get(number)
      if (block === undefined || number * SIZE >= before) continue
      if (states !== undefined && !states.some((state) => block.counts.has(state))) continue
      for (const run of block.runs.toReversed()) {
        if (run !== undefined && run.order < before) yield run
      }
    }
  }
}

function count({ counts }: Block, state: RunState, change: number): void {
  const total = (counts.get(state) ?? 0) + change
  if (total === 0) counts.delete(state)
  else counts.set(state, total)
}
