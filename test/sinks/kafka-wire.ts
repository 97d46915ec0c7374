/**
 * What the broker inside kcat does not do, put into its answers on the way: it does not say who controls the cluster, so
 * that kafkajs could have no idempotent producer; it never refuses a message; and its answers never get lost.
 */
import type { Socket } from 'node:net'

export interface Wire {
  join(client: Socket, server: Socket): void
  /** Refuses requests that are larger with this code of Kafka's. */
  refuseOver(bytes: number, code: number): void
  /** The broker gets the next request to store something, and its answer is lost with the connection. */
  loseAnswer(): void
  /** How many requests for a producer's number there were, which only idempotent ones have. */
  readonly producerIds: number
}

const PRODUCE = 0
const METADATA = 3
const INIT_PRODUCER_ID = 22

interface Asked {
  readonly key: number
  readonly version: number
  readonly bytes: number
}

export function kafkaWire(): Wire {
  let limit = { bytes: Number.POSITIVE_INFINITY, code: 0 }
  let [producerIds, losing] = [0, false]
  return {
    get producerIds() {
      return producerIds
    },
    refuseOver(bytes, code) {
      limit = { bytes, code }
    },
    loseAnswer() {
      losing = true
    },
    join(client, server) {
      const asked = new Map<number, Asked>()
      onFrames(client, (frame) => {
        const key = frame.readInt16BE(4)
        asked.set(frame.readInt32BE(8), { key, version: frame.readInt16BE(6), bytes: frame.length })
        if (key === INIT_PRODUCER_ID) producerIds += 1
        server.write(frame)
      })
      onFrames(server, (frame) => {
        const correlation = frame.readInt32BE(4)
        const { key = -1, version = 0, bytes = 0 } = asked.get(correlation) ?? {}
        asked.delete(correlation)
        if (key === PRODUCE && losing) {
          losing = false
          client.destroy()
          return
        }
        if (key === METADATA) nameController(frame, version)
        if (key === PRODUCE && bytes > limit.bytes) refuse(frame, limit.code)
        client.write(frame)
      })
    },
  }
}

/** Each begins with its length. */
function onFrames(socket: Socket, onFrame: (frame: Buffer) => void): void {
  let rest: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 4 && rest.length >= rest.readInt32BE(0) + 4) {
      const end = rest.readInt32BE(0) + 4
      onFrame(Buffer.from(rest.subarray(0, end)))
      rest = rest.subarray(end)
    }
  })
}

/** Metadata of versions 2 to 7: the wait, which is new in 3, the brokers, the cluster's name, and who controls it. */
function nameController(frame: Buffer, version: number): void {
  let at = version < 3 ? 8 : 12
  const brokers = frame.readInt32BE(at)
  const first = frame.readInt32BE(at + 4)
  at += 4
  for (let broker = 0; broker < brokers; broker += 1) at = afterText(frame, afterText(frame, at + 4) + 4)
  frame.writeInt32BE(first, afterText(frame, at))
}

/** Produce of one topic, in versions 2 to 7. */
function refuse(frame: Buffer, code: number): void {
  let at = afterText(frame, 12)
  const partitions = frame.readInt32BE(at)
  at += 4
  for (let partition = 0; partition < partitions; partition += 1, at += 30) frame.writeInt16BE(code, at + 4)
}

function afterText(frame: Buffer, at: number): number {
  return at + 2 + Math.max(frame.readInt16BE(at), 0)
}
