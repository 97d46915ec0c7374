/** One check of `belfry doctor`. */
export interface Check {
  readonly name: string
  /** The result in a few words, good or bad. */
  readonly about: string
  /** Empty when nothing is wrong. */
  readonly findings: readonly Finding[]
}

export interface Finding {
  readonly what: string
  /** The command to run, or the setting to change. */
  readonly fix: string
}
