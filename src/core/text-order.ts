/**
 * Compares texts by their code points. That is the order of their UTF-8 bytes, and so of every store; JavaScript's own `<`
 * compares UTF-16, and has characters beyond U+FFFF before those from U+E000 on. Who goes through pages in one order and
 * asks for the next in the other loses some of them.
 */
export function textOrder(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at += 1) {
    const [left, right] = [one.charCodeAt(at), other.charCodeAt(at)]
    if (left !== right) return place(left) - place(right)
  }
  return one.length - other.length
}

/** Halves of characters beyond U+FFFF stand behind all others. */
function place(unit: number): number {
  if (unit < 0xd800) return unit
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000
}

/** Names have 255 units at the most, and the last of all characters takes two. */
const LAST = '\u{10ffff}'.repeat(128)

/** In that order, names that begin with a prefix stand from the prefix itself to before this. */
export function afterPrefix(prefix: string): string {
  return prefix + LAST
}
