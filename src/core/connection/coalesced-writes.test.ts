import { describe, expect, it } from 'vitest'
import { failure } from '../errors.js'
import { CoalescedWrites } from './coalesced-writes.js'

/** A write that is answered when the test says so. */
function scene(nameOf?: (item: string) => string) {
  const batches: { readonly items: readonly string[]; answer(): void; refuse(error: Error): void }[] = []
  const shared = new CoalescedWrites<string, string>(
    (items) => {
      return new Promise((resolve, reject) => {
        batches.push({ items, answer: () => resolve(items.map((item) => `${item}!`)), refuse: reject })
      })
    },
    nameOf === undefined ? {} : { nameOf },
  )
  const sent = (at: number) => expect.poll(() => batches[at]?.items)
  return { shared, batches, sent }
}

describe('coalesced writes', () => {
  it('are sent at once when nothing is in flight', async () => {
    const { shared, batches, sent } = scene()
    const result = shared.write(['a'])
    await sent(0).toEqual(['a'])
    batches[0]?.answer()
    expect(await result).toEqual(['a!'])
  })

  it('wait for the write in flight and then go together, each with its own results', async () => {
    const { shared, batches, sent } = scene()
    const first = shared.write(['a'])
    await sent(0).toEqual(['a'])
    const others = [shared.write(['b', 'c']), shared.write([]), shared.write(['d'])]
    batches[0]?.answer()
    await first
    await sent(1).toEqual(['b', 'c', 'd'])
    batches[1]?.answer()
    expect(await Promise.all(others)).toEqual([['b!', 'c!'], [], ['d!']])
  })

  it('do not share a write when they are about the same thing, and keep their order', async () => {
    const { shared, batches, sent } = scene((item) => item.slice(0, 1))
    const results = ['a1', 'b1', 'a2', 'a3', 'c1'].map((item) => shared.write([item]))
    await sent(0).toEqual(['a1', 'b1', 'c1'])
    batches[0]?.answer()
    await sent(1).toEqual(['a2'])
    batches[1]?.answer()
    await sent(2).toEqual(['a3'])
    batches[2]?.answer()
    await Promise.all(results)
  })

  it('do not overtake an earlier call about the same thing', async () => {
    const { shared, batches, sent } = scene((item) => item.slice(0, 1))
    const results = [shared.write(['a1']), shared.write(['a2', 'b1']), shared.write(['b2'])]
    await sent(0).toEqual(['a1'])
    batches[0]?.answer()
    await sent(1).toEqual(['a2', 'b1'])
    batches[1]?.answer()
    await sent(2).toEqual(['b2'])
    batches[2]?.answer()
    await Promise.all(results)
  })

  it('are written one by one when one of them is refused, and only that one fails', async () => {
    const { shared, batches, sent } = scene()
    const results = ['good', 'bad', 'fine'].map((item) => shared.write([item]).catch((error: Error) => error.message))
    await sent(0).toEqual(['good', 'bad', 'fine'])
    batches[0]?.refuse(new Error('no'))
    await sent(1).toEqual(['good'])
    batches[1]?.answer()
    await sent(2).toEqual(['bad'])
    batches[2]?.refuse(new Error('no'))
    await sent(3).toEqual(['fine'])
    batches[3]?.answer()
    expect(await Promise.all(results)).toEqual([['good!'], 'no', ['fine!']])
  })

  it('all fail when the connection was lost, because it is unknown what was written', async () => {
    const { shared, batches, sent } = scene()
    const results = ['a', 'b'].map((item) => shared.write([item]).catch((error: Error) => error.message))
    await sent(0).toEqual(['a', 'b'])
    batches[0]?.refuse(failure('STORE_UNREACHABLE', 'gone'))
    expect(await Promise.all(results)).toEqual(['gone', 'gone'])
    expect(batches).toHaveLength(1)
  })

  it('are not delayed by a large one, and do not delay it', async () => {
    const { shared, batches, sent } = scene()
    const many = Array.from({ length: 1_000 }, (_, at) => String(at))
    const small = shared.write(['a'])
    const large = shared.write(many)
    await sent(0).toEqual(many)
    await sent(1).toEqual(['a'])
    for (const batch of batches) batch.answer()
    expect((await large).length + (await small).length).toBe(1_001)
  })
})
