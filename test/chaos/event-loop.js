// @ts-check
import { readFileSync } from 'node:fs'

/**
 * Reports how long something blocked the event loop: the delay of a timer, minus the time during which the process
 * waited for a core, which the process cannot influence.
 * @param {number} overMs
 * @param {(blockedMs: number) => void} tell
 */
export function watchEventLoop(overMs, tell) {
  const everyMs = 10
  let expected = performance.now() + everyMs
  let starved = starvedMs()
  setInterval(() => {
    const now = performance.now()
    const starvedNow = starvedMs()
    const blockedMs = now - expected - (starvedNow - starved)
    expected = now + everyMs
    starved = starvedNow
    if (blockedMs > overMs) tell(blockedMs)
  }, everyMs).unref()
}

/** Milliseconds for which the main thread has waited for a core since its start. */
function starvedMs() {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
