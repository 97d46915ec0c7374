/** A regular expression in the place of a text is matched. Without this it would equal anything, unnoticed. */
import { expect } from 'vitest'

expect.addEqualityTesters([
  (received: unknown, expected: unknown) =>
    expected instanceof RegExp && !(received instanceof RegExp)
      ? typeof received === 'string' && expected.test(received)
      : undefined,
])
