import { expect } from 'vitest'
import { asReceived, type SinkContractCase } from './sink-scene.js'

export const delivering: readonly SinkContractCase[] = [
  {
    name: 'a batch is delivered once, with one outcome per message, and has arrived when they say so',
    async run(scene) {
      const messages = scene.messages(25)
      expect(await scene.deliver(messages)).toEqual(messages.map(() => ({ delivered: true })))
      const arrived = await scene.arrivedOf(messages)
      expect([...arrived].sort(byId)).toEqual(messages.map(asReceived).sort(byId))
    },
  },
  {
    name: 'messages of one key arrive in the order in which they were handed over',
    async run(scene) {
      const messages = scene.messages(20, { schedule_id: 'one-key' })
      await scene.deliver(messages.slice(0, 12))
      await scene.deliver(messages.slice(12))
      expect((await scene.arrivedOf(messages)).map(({ id }) => id)).toEqual(messages.map(({ id }) => id))
    },
  },
  {
    name: 'a repetition has the same four fields, and its own attempt and token',
    async run(scene) {
      const first = scene.message()
      const second = { ...first, attempt: 2, token: first.token + 1, startedAt: first.startedAt + 1_000 }
      await scene.deliver([first])
      expect(await scene.deliver([second])).toEqual([{ delivered: true }])
      const arrived = await scene.arrivedOf([first])
      expect(arrived.length).toBeGreaterThanOrEqual(1)
      for (const { attempt: _, token: __, ...fields } of arrived) {
        const { attempt: ___, token: ____, ...expected } = asReceived(first)
        expect(fields).toEqual(expected)
      }
    },
  },
  {
    name: 'events of two stores that have the same id arrive both, and a repetition of either is no third event',
    async run(scene) {
      const one = scene.message()
      const other = { ...one, dedupeId: `another-store/${one.id}`, payload: 'of another store' }
      expect(await scene.deliver([one, other])).toEqual([{ delivered: true }, { delivered: true }])
      await scene.deliver([{ ...other, attempt: 2 }])
      const payloads = new Set((await scene.arrivedOf([one])).map(({ payload }) => JSON.stringify(payload)))
      expect(payloads).toEqual(new Set([one, other].map(({ payload }) => JSON.stringify(payload))))
    },
  },
  {
    name: 'a message of no schedule is delivered too',
    async run(scene) {
      const { schedule_id: _, ...message } = scene.message()
      expect(await scene.deliver([message])).toEqual([{ delivered: true }])
      expect(await scene.arrivedOf([message])).toEqual([asReceived(message)])
    },
  },
  {
    name: 'odd names and payloads arrive as they are',
    async run(scene) {
      const names = ['größe/日本', 'a b"c%d', `long/${'x'.repeat(240)}`]
      const payloads = [null, 'text', 'x'.repeat(100_000)]
      const messages = names.map((schedule_id, at) => scene.message({ schedule_id, payload: payloads[at] ?? null }))
      expect(await scene.deliver(messages)).toEqual(messages.map(() => ({ delivered: true })))
      const arrived = await scene.arrivedOf(messages)
      expect([...arrived].sort(byId)).toEqual(messages.map(asReceived).sort(byId))
    },
  },
  {
    name: 'nothing to deliver is no trouble',
    async run(scene) {
      expect(await scene.deliver([])).toEqual([])
    },
  },
  {
    name: 'several calls at a time are each answered for their own messages',
    async run(scene) {
      const calls = Array.from({ length: 8 }, () => scene.messages(5))
      const answers = await Promise.all(calls.map((messages) => scene.deliver(messages)))
      for (const answer of answers) expect(answer).toEqual(Array(5).fill({ delivered: true }))
      expect(await scene.arrivedOf(calls.flat())).toHaveLength(40)
    },
  },
]

export function byId(one: { readonly id: string }, other: { readonly id: string }): number {
  return one.id < other.id ? -1 : 1
}
