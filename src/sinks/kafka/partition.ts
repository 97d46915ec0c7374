/**
 * The partition of a key, as Kafka's Java producer chooses it: murmur2 of the key's bytes. The sink chooses partitions
 * itself, so that all clients agree and the sink knows the partitions of a batch.
 */
export function partitionOf(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions
}

const SEED = 0x9747b28c
const M = 0x5bd1e995

function murmur2(bytes: Buffer): number {
  let hash = SEED ^ bytes.length
  let at = 0
  for (; at + 4 <= bytes.length; at += 4) {
    let word = Math.imul(bytes.readInt32LE(at), M)
    word = Math.imul(word ^ (word >>> 24), M)
    hash = Math.imul(hash, M) ^ word
  }
  const rest = bytes.length - at
  if (rest > 0) hash = Math.imul(hash ^ bytes.readUIntLE(at, rest), M)
  hash = Math.imul(hash ^ (hash >>> 13), M)
  return hash ^ (hash >>> 15)
}
