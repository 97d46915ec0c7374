import { setImmediate } from 'node:timers/promises'
import { systemClock } from './clock.js'

/** The most items in one turn of the event loop. */
const SLICE = 100
/** A turn starts no further work after this long. */
const TURN_MS = 5

/** Runs a step for each item, and lets the event loop turn in between, so that a long list does not block it. */
export async function inTurns<Item, Result>(
  items: readonly Item[],
  step: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  while (results.length < items.length) {
    if (results.length > 0) await setImmediate()
    const isOver = turn()
    const from = results.length
    const started: Promise<Result>[] = []
    for (let at = from; at < Math.min(from + SLICE, items.length) && (at === from || !isOver()); at += 1) {
      started.push(step(items[at] as Item))
    }
    results.push(...(await Promise.all(started)))
  }
  return results
}

/** Lets the event loop turn if the caller has worked for long since the last time. Call it between parts of long work. */
export function breather(): () => Promise<void> {
  let isOver = turn()
  return async () => {
    if (!isOver()) return
    await setImmediate()
    isOver = turn()
  }
}

function turn(): () => boolean {
  const endsAt = systemClock.monotonic() + TURN_MS
  return () => systemClock.monotonic() >= endsAt
}
