import type { Chronicle } from '../chronicle.js'

/** While the store is frozen, no run starts. */
export function checkFreeze(chronicle: Chronicle): void {
  let frozen = false
  for (const entry of chronicle.of('frozen', 'thawed', 'claimed')) {
    if (entry.kind !== 'claimed') frozen = entry.kind === 'frozen'
    else if (frozen) {
      chronicle.violated('nothing starts in a frozen store', `${entry.run} was claimed`, entry.run)
    }
  }
}
