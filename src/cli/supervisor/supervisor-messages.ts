/** Messages between a process and its supervisor. */

export interface Program {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  readonly uid?: number
  readonly gid?: number
  /** The program's standard input, with `capture` only. Without `capture` the program inherits the supervisor's. */
  readonly stdin?: string
  /** Whether the supervisor captures the output, within bounds. Otherwise the program inherits the supervisor's output. */
  readonly capture: boolean
}

export type ToSupervisor =
  | { readonly kind: 'run'; readonly id: number; readonly program: Program }
  | { readonly kind: 'signal'; readonly id: number; readonly signal: NodeJS.Signals }
  /** SIGTERM now, and SIGKILL after `graceMs`. */
  | { readonly kind: 'end'; readonly id: number; readonly graceMs: number }
  /** The programs may run until `untilMs` of `machineMs()`: SIGTERM `graceMs` before it, SIGKILL at it. */
  | { readonly kind: 'extend'; readonly untilMs: number; readonly graceMs: number }

export type FromSupervisor =
  | { readonly kind: 'ready' }
  | { readonly kind: 'started'; readonly id: number; readonly pid: number }
  /** The program could not be started. */
  | { readonly kind: 'refused'; readonly id: number; readonly code: string; readonly message: string }
  | ({ readonly kind: 'ended'; readonly id: number } & ProgramEnd)
  /** `untilMs` is near: the programs got SIGTERM. */
  | { readonly kind: 'expired' }

export interface ProgramEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: { readonly text: string; readonly omitted: number }
}

/** A monotonic clock that all processes of a machine share; it does not stop while one of them is stopped (SIGSTOP). */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
