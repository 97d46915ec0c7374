/** A file in a message, with its whole path: `quote` would cut a long one. */
export function quotePath(path: string): string {
  return path === '-' ? 'standard input' : JSON.stringify(path)
}
