/** The types of `postgres.js`, which is plain JavaScript because the benches, which are not compiled, use it too. */
export interface RunningServer {
  readonly url: string
  stop(): Promise<void>
}

export function startPostgres(): Promise<RunningServer>

/** A server for one test, which may crash it. */
export interface OwnServer extends RunningServer {
  crash(): Promise<void>
  restart(): Promise<void>
}

export function startOwnPostgres(): Promise<OwnServer>
