/** Duplicates of clients of `@redis/client`, single or cluster. The store opens and closes them itself. */
import type { Clock } from '../../../core/clock.js'
import { inTime } from '../../../core/connection/in-time.js'
import { hearErrors } from './client-errors.js'
import type { Subscription } from './driver.js'

/** The time limit for connecting: a server may accept a connection and never answer. */
export const CONNECT_MS = 5_000

interface Client {
  connect(): Promise<unknown>
  destroy(): unknown
  on(event: 'error', listener: (error: unknown) => void): unknown
}

/** Returns a connected duplicate. If it does not connect in time, it is destroyed. */
export async function connectedDuplicate<Own extends Client>(
  client: { duplicate(): Own },
  clock: Clock,
  then?: (fresh: Own) => Promise<unknown>,
): Promise<Own> {
  const fresh = client.duplicate()
  hearErrors(fresh)
  try {
    await inTime(
      clock,
      CONNECT_MS,
      fresh.connect().then(() => then?.(fresh)),
    )
  } catch (error) {
    fresh.destroy()
    throw error
  }
  return fresh
}

/**
 * Subscribes over a separate connection. Calls `gap` when it was replaced, because messages may have been lost
 * meanwhile.
 */
export async function listening(open: () => Promise<Client>, gap: () => void): Promise<Subscription> {
  let listener = await open()
  let ended = false
  async function replace() {
    const fresh = await open()
    if (ended) return void fresh.destroy()
    gap()
    listener.destroy()
    listener = fresh
  }
  return {
    renew: () => replace().catch(() => {}),
    end() {
      ended = true
      listener.destroy()
    },
  }
}
