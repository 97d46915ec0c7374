import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../core/sink.js'
import { type ManualClock, manualClock } from '../../testing/manual-clock.js'
import { Link } from '../broker-link.js'
import type { KafkaClient, KafkaMessage, Written } from './client.js'
import { PartitionQueues } from './partition-queues.js'

const PARTITIONS = 3
/** Keys of the partitions 0, 1 and 2. */
const KEYS = ['order/1', 'order/0', 'order/6'] as const
/** Another key of partition 0. */
const BESIDE = 'order/3'

type Answer = 'written' | 'left out' | 'hangs' | { readonly code: number }

/** A cluster with scripted answers, by topic and partition. */
class ScriptedCluster {
  readonly clock: ManualClock = manualClock()
  /** The written keys, by partition. */
  readonly written: Record<string, string[]> = {}
  readonly answers = new Map<string, Answer>()
  readonly hanging: (() => void)[] = []
  readonly missing = new Set<string>()
  tooLarge = ''
  lookups = 0
  clients = 0
  readonly queues: PartitionQueues

  constructor() {
    const connect = async () => {
      this.clients += 1
      return this.#client()
    }
    const link = new Link({ broker: 'the Kafka cluster', owned: true, connect, end: () => {}, clock: this.clock })
    this.queues = new PartitionQueues(link, this.clock)
  }

  /** Sends messages with these keys, and returns their outcomes as they arrive. */
  deliver(topic: string, ...keys: readonly string[]): (Delivery | undefined)[] {
    const outcomes: (Delivery | undefined)[] = keys.map(() => undefined)
    const items = keys.map((key, at) => ({
      id: key,
      message: { key, value: '{}', headers: {} },
      bytes: 100,
      isAwaited: () => true,
      settle: (outcome: Delivery) => {
        outcomes[at] ??= outcome
      },
    }))
    void this.queues.deliver(topic, items)
    return outcomes
  }

  #client(): KafkaClient {
    return {
      recoversItself: false,
      close: async () => {},
      partitions: async (topic) => {
        this.lookups += 1
        if (this.missing.has(topic)) throw Object.assign(new Error('unknown topic'), { code: 3 })
        return PARTITIONS
      },
      send: async (topic, partition, messages) => this.#write(topic, Number(partition), messages),
    }
  }

  async #write(topic: string, partition: number, messages: readonly KafkaMessage[]): Promise<Written[]> {
    const place = `${topic} ${partition}`
    const answer = this.answers.get(place) ?? 'written'
    if (messages.some(({ key }) => key === this.tooLarge)) throw Object.assign(new Error('too large'), { code: 10 })
    if (answer === 'left out') return []
    if (answer === 'hangs') await new Promise<void>((resolve) => this.hanging.push(resolve))
    else if (answer !== 'written') throw Object.assign(new Error(`code ${answer.code}`), { code: answer.code })
    const known = this.written[place] ?? []
    this.written[place] = [...known, ...messages.map(({ key }) => key)]
    return [{ topic, partition }]
  }
}

const yes = { delivered: true }

describe('lanes to Kafka', () => {
  it('deliver nothing that the answer omits, and retry it', async () => {
    const cluster = new ScriptedCluster()
    cluster.answers.set('events 0', 'left out')
    const outcomes = cluster.deliver('events', ...KEYS)
    await cluster.clock.advance(50)
    expect(outcomes).toEqual([undefined, yes, yes])
    cluster.answers.clear()
    await cluster.clock.advance(1_000)
    expect(outcomes).toEqual([yes, yes, yes])
    expect(cluster.written).toEqual({ 'events 0': [KEYS[0]], 'events 1': [KEYS[1]], 'events 2': [KEYS[2]] })
  })

  it('abandon a partition that is silent while others answer, until it answers again', async () => {
    const cluster = new ScriptedCluster()
    cluster.answers.set('events 0', 'hangs')
    const first = cluster.deliver('events', KEYS[0])
    await cluster.clock.advance(100)
    const others = cluster.deliver('events', KEYS[1], KEYS[2])
    await cluster.clock.advance(100)
    expect([...first, ...others]).toEqual([undefined, yes, yes])
    await cluster.clock.advance(2_500)
    expect(first).toMatchObject([{ delivered: false, error: { message: /partition 0 .* other partitions do/ } }])
    const second = cluster.deliver('events', KEYS[0], KEYS[1])
    await cluster.clock.advance(10)
    expect(second).toMatchObject([{ delivered: false, untried: true }, yes])
    cluster.answers.clear()
    for (const resolve of cluster.hanging) resolve()
    await cluster.clock.advance(2_000)
    const third = cluster.deliver('events', KEYS[0])
    await cluster.clock.advance(10)
    expect(third).toEqual([yes])
  })

  it('remember messages that a slow partition acknowledges late, and do not write them again', async () => {
    const cluster = new ScriptedCluster()
    cluster.answers.set('events 0', 'hangs')
    const first = cluster.deliver('events', KEYS[0])
    await cluster.clock.advance(100)
    cluster.deliver('events', KEYS[1])
    await cluster.clock.advance(3_000)
    expect(first).toMatchObject([{ delivered: false }])
    for (const resolve of cluster.hanging) resolve()
    await cluster.clock.advance(10)
    const again = cluster.deliver('events', KEYS[0])
    await cluster.clock.advance(10)
    expect(again).toEqual([yes])
    expect(cluster.written['events 0']).toEqual([KEYS[0]])
  })

  it('report no outage of the cluster while other partitions answer', async () => {
    const cluster = new ScriptedCluster()
    cluster.answers.set('events 0', 'hangs')
    cluster.answers.set('events 1', { code: 5 })
    const outcomes = cluster.deliver('events', KEYS[0], KEYS[1])
    for (let second = 0; second < 20; second += 1) {
      cluster.deliver('events', KEYS[2])
      await cluster.clock.advance(1_000)
    }
    expect(outcomes).toMatchObject([{ delivered: false }, { delivered: false }])
    for (const outcome of outcomes) expect(outcome).not.toHaveProperty('unreachable')
  })

  it('hold up a call for two seconds while other partitions answer, and after that for half a second', async () => {
    const cluster = new ScriptedCluster()
    cluster.answers.set('events 0', { code: 5 })
    const heldMs = async () => {
      const outcomes = cluster.deliver('events', KEYS[0])
      let ms = 0
      for (; outcomes[0] === undefined; ms += 100) {
        cluster.deliver('events', KEYS[2])
        await cluster.clock.advance(100)
      }
      await cluster.clock.advance(1_500)
      return ms
    }
    const held = [await heldMs(), await heldMs()]
    expect(held[0]).toBeGreaterThanOrEqual(2_000)
    expect(held[0]).toBeLessThanOrEqual(3_100)
    expect(held[1]).toBeLessThanOrEqual(1_000)
  })

  it('wait while no partition answers', async () => {
    const cluster = new ScriptedCluster()
    for (const partition of [0, 1, 2]) cluster.answers.set(`events ${partition}`, 'hangs')
    const outcomes = cluster.deliver('events', ...KEYS)
    await cluster.clock.advance(9_000)
    expect(outcomes).toEqual([undefined, undefined, undefined])
    for (const resolve of cluster.hanging) resolve()
    await cluster.clock.advance(10)
    expect(outcomes).toEqual([yes, yes, yes])
  })

  it('retry at once when a leader has moved, and keep the order of its messages', async () => {
    const cluster = new ScriptedCluster()
    cluster.answers.set('events 0', { code: 6 })
    const first = cluster.deliver('events', KEYS[0])
    await cluster.clock.advance(50)
    const second = cluster.deliver('events', BESIDE)
    cluster.answers.clear()
    await cluster.clock.advance(200)
    expect([...first, ...second]).toEqual([yes, yes])
    expect(cluster.written['events 0']).toEqual([KEYS[0], BESIDE])
    expect(cluster.clients).toBe(1)
  })

  it('report missing replicas after a while, so that the engine counts an outage', async () => {
    const cluster = new ScriptedCluster()
    for (const partition of [0, 1, 2]) cluster.answers.set(`events ${partition}`, { code: 19 })
    const outcomes = cluster.deliver('events', ...KEYS)
    await cluster.clock.advance(20_000)
    expect(outcomes).toMatchObject(Array(3).fill({ delivered: false, unreachable: true }))
  })

  it('replace the client when a broker does not answer', async () => {
    const cluster = new ScriptedCluster()
    cluster.answers.set('events 0', { code: 0 })
    const outcomes = cluster.deliver('events', KEYS[0])
    await cluster.clock.advance(50)
    cluster.answers.clear()
    await cluster.clock.advance(500)
    expect(outcomes).toEqual([yes])
    expect(cluster.clients).toBe(2)
  })

  it('refuse a message that is too large, and write all others', async () => {
    const cluster = new ScriptedCluster()
    cluster.tooLarge = BESIDE
    const outcomes = cluster.deliver('events', KEYS[0], KEYS[0], BESIDE, KEYS[0], KEYS[1])
    await cluster.clock.advance(10)
    expect(outcomes).toMatchObject([yes, yes, { delivered: false, retryable: false }, yes, yes])
    expect(cluster.written['events 0']).toEqual([KEYS[0], KEYS[0], KEYS[0]])
  })
})

describe('a topic that does not exist', () => {
  it('delays no messages for other topics, and is looked up occasionally', async () => {
    const cluster = new ScriptedCluster()
    cluster.missing.add('missing')
    for (let second = 0; second < 4; second += 1) {
      const [bad, good] = [cluster.deliver('missing', ...KEYS), cluster.deliver('events', ...KEYS)]
      await cluster.clock.advance(10)
      expect(good).toEqual([yes, yes, yes])
      expect(bad).toMatchObject(Array(3).fill({ delivered: false, untried: true, error: { code: 'SINK_REFUSED' } }))
      await cluster.clock.advance(1_000)
    }
    expect(cluster.lookups).toBe(2)
  })

  it('may appear a little later; after a while its messages fail permanently', async () => {
    const cluster = new ScriptedCluster()
    cluster.missing.add('late').add('never')
    cluster.deliver('late', KEYS[0])
    cluster.deliver('never', KEYS[0])
    await cluster.clock.advance(5_100)
    cluster.missing.delete('late')
    const [late, never] = [cluster.deliver('late', KEYS[0]), cluster.deliver('never', KEYS[0])]
    await cluster.clock.advance(10)
    expect(late).toEqual([yes])
    expect(never).toMatchObject([{ delivered: false, retryable: false }])
  })
})
