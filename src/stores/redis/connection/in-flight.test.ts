import { describe, expect, it } from 'vitest'
import { Sent, UnderWay } from './in-flight.js'

function sent(name: string): Sent {
  return new Sent(name, 0, () => {})
}

function all(underWay: UnderWay): string[] {
  const keys: string[] = []
  for (let each = underWay.oldest; each !== undefined; each = each.after) keys.push(each.key)
  return keys
}

describe('what is under way', () => {
  it('is there in the order in which it was sent, whatever is answered first', () => {
    const underWay = new UnderWay()
    const [a, b, c] = [sent('a'), sent('b'), sent('c')]
    for (const each of [a, b, c]) underWay.add(each)
    expect(underWay.delete(b)).toBe(true)
    expect(all(underWay)).toEqual(['a', 'c'])
    expect(underWay.delete(c)).toBe(true)
    underWay.add(b)
    expect(all(underWay)).toEqual(['a', 'b'])
    expect(underWay.delete(a)).toBe(true)
    expect(underWay.delete(b)).toBe(true)
    expect(underWay.oldest).toBeUndefined()
  })

  it('is answered once, and holds on to nothing then', () => {
    const underWay = new UnderWay()
    const [a, b, c] = [sent('a'), sent('b'), sent('c')]
    for (const each of [a, b, c]) underWay.add(each)
    expect(underWay.delete(b)).toBe(true)
    expect(underWay.delete(b)).toBe(false)
    expect([b.before, b.after]).toEqual([undefined, undefined])
    expect(all(underWay)).toEqual(['a', 'c'])
  })
})
