/**
 * Alters the answers of the broker inside kcat to simulate what that broker never does: refuse a message, lose an
 * answer, or omit a partition.
 */
import type { Socket } from 'node:net'

export interface Wire {
  join(client: Socket, server: Socket): void
  /** Refuses larger requests with this Kafka error code. */
  refuseOver(bytes: number, code: number): void
  /** The broker receives the next produce request, and its answer is lost with the connection. */
  loseAnswer(): void
  /** The broker does not receive the next produce request, and the answer names no partition. */
  leaveOut(): { leftOut(): number }
}

const PRODUCE = 0

interface Asked {
  readonly key: number
  readonly bytes: number
}

export function kafkaWire(): Wire {
  let limit = { bytes: Number.POSITIVE_INFINITY, code: 0 }
  let losing = false
  let leaving = { isNext: false, leftOut: 0 }
  return {
    refuseOver(bytes, code) {
      limit = { bytes, code }
    },
    loseAnswer() {
      losing = true
    },
    leaveOut() {
      const state = { isNext: true, leftOut: 0 }
      leaving = state
      return { leftOut: () => state.leftOut }
    },
    join(client, server) {
      const asked = new Map<number, Asked>()
      onFrames(client, (frame) => {
        const key = frame.readInt16BE(4)
        asked.set(frame.readInt32BE(8), { key, bytes: frame.length })
        if (key === PRODUCE && leaving.isNext) {
          leaving.isNext = false
          leaving.leftOut += 1
          client.write(emptyAnswer(frame))
        } else server.write(frame)
      })
      onFrames(server, (frame) => {
        const correlation = frame.readInt32BE(4)
        const { key = -1, bytes = 0 } = asked.get(correlation) ?? {}
        asked.delete(correlation)
        if (key === PRODUCE && losing) {
          losing = false
          client.destroy()
          return
        }
        if (key === PRODUCE && bytes > limit.bytes) refuse(frame, limit.code)
        client.write(frame)
      })
    },
  }
}

/** An empty answer to a produce request, versions 2 to 7: no topics. */
function emptyAnswer(request: Buffer): Buffer {
  const answer = Buffer.alloc(16)
  answer.writeInt32BE(12, 0)
  answer.writeInt32BE(request.readInt32BE(8), 4)
  return answer
}

/** Splits the stream into frames, each prefixed with its length. */
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

/** Refuses a produce request for one topic, versions 2 to 7. */
function refuse(frame: Buffer, code: number): void {
  let at = afterText(frame, 12)
  const partitions = frame.readInt32BE(at)
  at += 4
  for (let partition = 0; partition < partitions; partition += 1, at += 30) frame.writeInt16BE(code, at + 4)
}

function afterText(frame: Buffer, at: number): number {
  return at + 2 + Math.max(frame.readInt16BE(at), 0)
}
