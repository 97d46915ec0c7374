/**
 * Lets an expected regular expression match a received text. By default vitest would compare its (empty) fields and
 * accept anything.
 */
import { expect } from 'vitest'

expect.addEqualityTesters([
  (received: unknown, expected: unknown) =>
    expected instanceof RegExp && !(received instanceof RegExp)
      ? typeof received === 'string' && expected.test(received)
      : undefined,
])
