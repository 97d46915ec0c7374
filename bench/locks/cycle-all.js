// @ts-check

/**
 * Resolves to the number of cycles that each client completed.
 * @param {number} clients
 * @param {number} forMs
 * @param {(client: number) => Promise<boolean>} cycle
 */
export function cycleAll(clients, forMs, cycle) {
  const end = performance.now() + forMs
  return Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      let done = 0
      while (performance.now() < end) if (await cycle(client)) done += 1
      return done
    }),
  )
}

/**
 * @param {import('../../dist/index.js').Belfry} belfry
 * @param {string} name
 * @param {string} [wait]
 */
export async function lockAndUnlock(belfry, name, wait) {
  const lock = await (wait === undefined ? belfry.lock(name) : belfry.lock(name, { wait }))
  if (lock === undefined) return false
  await lock.release()
  return true
}
