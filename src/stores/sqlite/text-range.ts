/** Text in the order of the file: what begins with a prefix stands from the prefix itself to before this. */
export function afterPrefix(prefix: string): string {
  return `${prefix}\u{10ffff}`
}
