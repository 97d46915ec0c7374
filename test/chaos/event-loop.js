// @ts-check
import { readFileSync } from 'node:fs'

/**
 * Tells how long something blocked the event loop: how late it comes to a timer, less the time in which the machine had
 * no core for this process, which is nobody's fault here.
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

/** Milliseconds that the main thread has waited for a core since it began. */
function starvedMs() {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
