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

type Settings = Readonly<Record<string, string>>

export function startOwnPostgres(settings?: Settings): Promise<OwnServer>

/** A streaming standby of a running server, under a name that the primary knows. `select pg_promote()` promotes it. */
export function startStandby(primary: string, name: string, settings?: Settings): Promise<OwnServer>

/** The folder of `initdb` and its like. */
export function postgresBinaries(): string
