import { type Clock, systemClock } from '../../core/clock.js'

/** A broker that takes connections and says nothing must not be waited for while another would answer. */
const STAGGER_MS = 500

/**
 * Connects by whichever broker answers first: by the first one, and by the next whenever one has failed or has not answered
 * for a moment. Connections that come too late are closed. Rejects with the last failure when all have failed.
 */
export function raceBrokers<Connection>(
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
