/**
 * Lets an expected regular expression match a received text. Without this, vitest compares the fields of the
 * expression, which has none, and accepts any text.
 */
import { expect } from 'vitest'

expect.addEqualityTesters([
  (received: unknown, expected: unknown) =>
    expected instanceof RegExp && !(received instanceof RegExp)
      ? typeof received === 'string' && expected.test(received)
      : undefined,
])
