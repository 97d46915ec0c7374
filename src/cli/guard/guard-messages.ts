/** What a process and its guard say to each other. */

export interface Program {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  readonly uid?: number
  readonly gid?: number
  /** What it reads; the terminal, where nothing is captured. */
  readonly stdin?: string
  /** Whether its output is kept, within bounds, or goes where ours goes. */
  readonly capture: boolean
}

export type ToGuard =
  | { readonly kind: 'run'; readonly id: number; readonly program: Program }
  | { readonly kind: 'signal'; readonly id: number; readonly signal: NodeJS.Signals }
  /** SIGTERM now, and SIGKILL if it takes longer than this. */
  | { readonly kind: 'end'; readonly id: number; readonly graceMs: number }
  /** All is well until then, by the machine's own monotonic clock; SIGTERM comes so long before, SIGKILL at that time. */
  | { readonly kind: 'trust'; readonly untilMs: number; readonly graceMs: number }

export type FromGuard =
  | { readonly kind: 'ready' }
  | { readonly kind: 'started'; readonly id: number; readonly pid: number }
  /** It could not be started. */
  | { readonly kind: 'refused'; readonly id: number; readonly code: string; readonly message: string }
  | ({ readonly kind: 'ended'; readonly id: number } & ProgramEnd)
  /** Trust ran out: what runs was told to end. */
  | { readonly kind: 'lapsed' }

export interface ProgramEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: { readonly text: string; readonly omitted: number }
}

/** The same for all processes of a machine, and it goes on while one of them is stopped. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
