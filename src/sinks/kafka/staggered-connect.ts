import { type Clock, systemClock } from '../../core/clock.js'

/** The next broker is tried after this long, because a broker may hang. */
const STAGGER_MS = 500

/**
 * Connects through the broker that answers first, as happy eyeballs does. It starts with the first broker, and tries
 * the next when one has failed or has not answered within 500 ms. Later connections are closed. Rejects with the last
 * error when all fail.
 */
export function connectStaggered<Connection>(
  brokers: readonly string[],
  connect: (brokers: readonly string[]) => Promise<Connection>,
  end: (connection: Connection) => unknown,
  clock: Clock = systemClock,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let [begun, failed, isOver] = [0, 0, false]
    let cancelNext = () => {}
    const begin = () => {
      cancelNext()
      const at = begun
      begun += 1
      if (begun < brokers.length) cancelNext = clock.after(STAGGER_MS, begin)
      connect([...brokers.slice(at), ...brokers.slice(0, at)]).then(
        (connection) => {
          cancelNext()
          if (isOver) end(connection)
          else resolve(connection)
          isOver = true
        },
        (error: unknown) => {
          failed += 1
          if (isOver) return
          if (failed === brokers.length) reject(error)
          else if (begun < brokers.length) begin()
        },
      )
    }
    begin()
  })
}
