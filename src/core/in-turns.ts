import { setImmediate } from 'node:timers/promises'

/** Items in one turn of the event loop. A step takes tens of microseconds, so a turn takes a few milliseconds. */
const SLICE = 100

/** Runs a step for each item, and lets the event loop turn in between, so that a long list does not block it. */
export async function inTurns<Item, Result>(
  items: readonly Item[],
  step: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let at = 0; at < items.length; at += SLICE) {
    if (at > 0) await setImmediate()
    results.push(...(await Promise.all(items.slice(at, at + SLICE).map(step))))
  }
  return results
}
