/**
 * Compares texts by code points, which is the order of their UTF-8 bytes and of every store. JavaScript's `<` compares UTF-16
 * units, which puts characters beyond U+FFFF before U+E000. Paging through a list must not mix the two orders: it would
 * leave out the items between.
 */
export function textOrder(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at += 1) {
    const [left, right] = [one.charCodeAt(at), other.charCodeAt(at)]
    if (left !== right) return place(left) - place(right)
  }
  return one.length - other.length
}

/** Sorts surrogates, the halves of characters beyond U+FFFF, after all other units. */
function place(unit: number): number {
  if (unit < 0xd800) return unit
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000
}

/** The last code point, which takes two units, repeated to more than the 255 units of the longest name. */
const LAST = '\u{10ffff}'.repeat(128)

/** An upper bound: names that begin with the prefix sort from the prefix itself to before this text. */
export function afterPrefix(prefix: string): string {
  return prefix + LAST
}
