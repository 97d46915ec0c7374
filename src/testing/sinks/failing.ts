import { expect } from 'vitest'
import type { Undelivered } from '../../core/sink.js'
import { byId } from './delivering.js'
import { asReceived, type SinkContractCase } from './sink-scene.js'

/** How soon a call must resolve after its signal fires. */
const SOON_MS = 5_000

export const failing: readonly SinkContractCase[] = [
  {
    name: 'what a schedule says about its delivery is followed',
    async run(scene) {
      const { elsewhere } = scene.opened
      if (elsewhere === undefined) return
      scene.sink.check?.(elsewhere.options)
      const message = scene.message({ options: elsewhere.options })
      expect(await scene.deliver([message])).toEqual([{ delivered: true }])
      expect(await elsewhere.arrived()).toEqual([asReceived(message)])
    },
  },
  {
    name: 'what a schedule may not say is refused with the reason, and fails for good if it comes all the same',
    async run(scene) {
      for (const options of scene.opened.badOptions ?? []) {
        const code = expect.stringMatching(/^(OPTION_INVALID|OVERRIDE_REFUSED)$/)
        expect(() => scene.sink.check?.(options)).toThrow(expect.objectContaining({ code }))
        const [bad, good] = [scene.message({ options }), scene.message()]
        const outcomes = await scene.deliver([bad, good])
        expect(outcomes).toMatchObject([{ delivered: false, retryable: false }, { delivered: true }])
      }
    },
  },
  {
    name: 'a message that is too large fails for good, and takes no other with it',
    async run(scene) {
      const { tooLarge } = scene.opened
      if (tooLarge === undefined) return
      const messages = [scene.message(), scene.message({ payload: tooLarge }), scene.message()]
      const outcomes = await scene.deliver(messages)
      expect(outcomes).toMatchObject([{ delivered: true }, { delivered: false, retryable: false }, { delivered: true }])
    },
  },
  {
    name: 'what the answer of a client leaves out is not delivered, and arrives when it is tried again',
    async run(scene) {
      const { answerInPart } = scene.opened
      if (answerInPart === undefined) return
      await scene.deliver(scene.messages(1))
      const { leftOut } = await answerInPart()
      const messages = scene.messages(20)
      const outcomes = await scene.attempt(messages)
      expect(leftOut()).toBeGreaterThan(0)
      const isIn = async () => new Set((await scene.arrivedOf(messages)).map(({ id }) => id))
      const arrived = await isIn()
      expect(messages.filter(({ id }, at) => outcomes[at]?.delivered === true && !arrived.has(id))).toEqual([])
      await scene.deliverAll(messages.filter((_, at) => outcomes[at]?.delivered !== true))
      expect((await isIn()).size).toBe(messages.length)
    },
  },
  {
    name: 'while the broker is away nothing is said to be delivered, and it may be tried again',
    async run(scene) {
      await scene.deliver(scene.messages(1))
      await scene.opened.down()
      try {
        const outcomes = await scene.attempt(scene.messages(3), 2_000)
        expect(outcomes).toHaveLength(3)
        for (const outcome of outcomes) {
          expect(outcome.delivered).toBe(false)
          expect((outcome as Undelivered).retryable).not.toBe(false)
          expect((outcome as Undelivered).error).toBeDefined()
        }
      } finally {
        await scene.opened.up()
      }
    },
  },
  {
    name: 'when the broker is back, the same sink delivers again, with the same ids',
    async run(scene) {
      const before = scene.messages(5)
      await scene.deliver(before)
      const during = scene.messages(5)
      await scene.opened.down()
      try {
        await scene.attempt(during, 2_000)
      } finally {
        await scene.opened.up()
      }
      await scene.deliverAll(during)
      const arrived = await scene.arrivedOf(during)
      const ids = [...new Set(arrived.map(({ id }) => id))].sort()
      expect(ids).toEqual(during.map(({ id }) => id).sort())
      expect([...arrived].sort(byId)[0]).toMatchObject({ payload: [...during].sort(byId)[0]?.payload })
    },
  },
  {
    name: 'a broker that goes away in the middle of a call loses nothing that was said to be delivered',
    async run(scene) {
      await scene.deliver(scene.messages(1))
      const calls = Array.from({ length: 10 }, () => scene.messages(20))
      const answers = calls.map((messages) => scene.attempt(messages, 3_000))
      await scene.opened.down()
      const outcomes = (await Promise.all(answers)).flat()
      await scene.opened.up()
      const messages = calls.flat()
      const acknowledged = messages.filter((_, at) => outcomes[at]?.delivered === true)
      await scene.deliverAll(messages.filter((_, at) => outcomes[at]?.delivered !== true))
      const ids = new Set((await scene.arrivedOf(messages)).map(({ id }) => id))
      expect(acknowledged.filter(({ id }) => !ids.has(id))).toEqual([])
      expect(ids.size).toBe(messages.length)
    },
  },
  {
    name: 'a call whose signal fires answers soon, and never with an acknowledgement that it does not have',
    async run(scene) {
      await scene.deliver(scene.messages(1))
      await scene.opened.down()
      try {
        const startedAt = performance.now()
        const outcomes = await scene.attempt(scene.messages(2), 200)
        expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
        expect(outcomes.map(({ delivered }) => delivered)).toEqual([false, false])
      } finally {
        await scene.opened.up()
      }
    },
  },
]
