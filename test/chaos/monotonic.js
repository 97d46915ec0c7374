// @ts-check
/** Monotonic milliseconds: the same for all processes of a machine, even if their wall clocks differ. */
export function monotonicMs() {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}
