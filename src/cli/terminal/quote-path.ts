/** A file in a message: all of its path, since half of one helps nobody to find it. */
export function quotePath(path: string): string {
  return path === '-' ? 'standard input' : JSON.stringify(path)
}
