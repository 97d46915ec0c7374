import { describe, expect, it } from 'vitest'
import { CoalescedWrites } from './coalesced-writes.js'

/** Scripts that are answered when the test says so. */
function scene(sharing = { most: 3, atOnce: 2 }) {
  const scripts: { readonly items: readonly string[]; answer(): void; refuse(error: Error): void }[] = []
  const shared = new CoalescedWrites<string, string>((items) => {
    return new Promise((resolve, reject) => {
      scripts.push({ items, answer: () => resolve(items.map((item) => `${item}!`)), refuse: reject })
    })
  }, sharing)
  const sent = () => scripts.map(({ items }) => items.join(''))
  return { shared, scripts, sent }
}

describe('calls that share a script', () => {
  it('go at once when there is room, together with those of the same turn', async () => {
    const { shared, scripts, sent } = scene()
    const results = [shared.call('a'), shared.call('b')]
    await expect.poll(sent).toEqual(['ab'])
    scripts[0]?.answer()
    expect(await Promise.all(results)).toEqual(['a!', 'b!'])
  })

  it('are split into scripts of their own, and no more of them are under way than may be', async () => {
    const { shared, scripts, sent } = scene()
    const results = [...'abcdefgh'].map((item) => shared.call(item))
    await expect.poll(sent).toEqual(['abc', 'def'])
    scripts[1]?.answer()
    await expect.poll(sent).toEqual(['abc', 'def', 'gh'])
    expect(await results[4]).toBe('e!')
    scripts[0]?.answer()
    scripts[2]?.answer()
    expect(await Promise.all(results)).toEqual([...'abcdefgh'].map((item) => `${item}!`))
  })

  it('are all told of a failure, and those that come later are not', async () => {
    const { shared, scripts, sent } = scene()
    const results = [shared.call('a'), shared.call('b')].map((call) => call.catch((error: Error) => error.message))
    await expect.poll(sent).toEqual(['ab'])
    scripts[0]?.refuse(new Error('gone'))
    expect(await Promise.all(results)).toEqual(['gone', 'gone'])
    const later = shared.call('c')
    await expect.poll(sent).toEqual(['ab', 'c'])
    scripts[1]?.answer()
    expect(await later).toBe('c!')
  })
})
