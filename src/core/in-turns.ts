import { setImmediate } from 'node:timers/promises'

/** So many go into one turn: checking one takes tens of microseconds. */
const SLICE = 100

/** Does something for each of many, however many they are, and lets the event loop have its turns between. */
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
