import { Partitioners } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { partitionOf } from './partition.js'

describe('the partition of a key', () => {
  it('is the one that Kafka’s own producer chooses', () => {
    const partitioner = Partitioners.DefaultPartitioner()
    const partitionMetadata = Array.from({ length: 12 }, (_, partitionId) => ({ partitionId, leader: 1 }))
    const chosen = (key: string) =>
      partitioner({ topic: 'events', partitionMetadata: partitionMetadata as never, message: { key, value: '' } })
    for (const key of ['a', 'ab', 'abc', 'report/daily', 'größe/日本', 'x'.repeat(1_001)]) {
      expect(partitionOf(key, 12)).toBe(chosen(key))
    }
    for (let at = 0; at < 1_000; at += 1) expect(partitionOf(`order/${at}`, 12)).toBe(chosen(`order/${at}`))
  })
})
