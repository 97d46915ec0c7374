/** What `postgres.js` exports: it is plain JavaScript so that the benches, which are not compiled, can start one too. */
export interface RunningServer {
  readonly url: string
  stop(): Promise<void>
}

export function startPostgres(): Promise<RunningServer>

/** A server of one's own, which may be crashed. */
export interface OwnServer extends RunningServer {
  crash(): Promise<void>
  restart(): Promise<void>
}

export function startOwnPostgres(): Promise<OwnServer>
