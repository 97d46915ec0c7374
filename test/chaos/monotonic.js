// @ts-check
/** Milliseconds that only grow, and that all processes of a machine agree on, however wrong their clocks are. */
export function monotonicMs() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}
