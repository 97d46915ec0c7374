/** What a doctor looks at, and what he found: each finding says what to do about it. */
export interface Check {
  readonly name: string
  /** What was seen, in a few words, well or not. */
  readonly about: string
  /** Empty when all is well. */
  readonly findings: readonly Finding[]
}

export interface Finding {
  readonly what: string
  /** A command to run, or what to change. */
  readonly fix: string
}
