import type { SinkMessage } from '../core/sink.js'
import type { Settle } from './broker-link.js'

/** An encoded message with its topic, exchange or stream. */
export interface Addressed<Item> {
  readonly to: string
  readonly item: Item
}

/** Groups a batch by topic, exchange or stream, in order. A message that cannot be encoded is settled at once. */
export function byDestination<Item>(
  messages: readonly SinkMessage[],
  address: (message: SinkMessage, at: number) => Addressed<Item>,
  settle: Settle,
): ReadonlyMap<string, readonly Item[]> {
  const all = new Map<string, Item[]>()
  for (const [at, message] of messages.entries()) {
    try {
      const { to, item } = address(message, at)
      const items = all.get(to)
      if (items === undefined) all.set(to, [item])
      else items.push(item)
    } catch (error) {
      settle(at, { delivered: false, error, retryable: false })
    }
  }
  return all
}
