/** Names have 255 units at the most, and the last of all characters takes two. */
const LAST = '\u{10ffff}'.repeat(128)

/** Text in the order of the file: what begins with a prefix stands from the prefix itself to before this. */
export function afterPrefix(prefix: string): string {
  return prefix + LAST
}
