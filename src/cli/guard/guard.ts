/** Starts programs through a guard, which ends them when this process no longer can: see `guard-process.ts`. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { failure } from '../../core/errors.js'
import type { FromGuard, Program, ProgramEnd, ToGuard } from './guard-messages.js'

const MAIN = fileURLToPath(new URL('./guard-process.js', import.meta.url))

interface Waiting {
  readonly resolve: (end: ProgramEnd) => void
  readonly reject: (error: Error) => void
  pid?: number
}

/** A program that could not be started: there is none, or it may not be run. */
export class NotStarted extends Error {
  override readonly name = 'NotStarted'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface Started {
  readonly ended: Promise<ProgramEnd>
  /** To its whole group. */
  signal(signal: NodeJS.Signals): void
  end(graceMs: number): void
}

export class Guard {
  /** Trust ran out, and what runs was told to end. */
  onLapsed: () => void = () => {}
  readonly #process: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0

  private constructor(guard: ChildProcess) {
    this.#process = guard
    guard.on('message', (message: FromGuard) => this.#heard(message))
    guard.on('exit', () => this.#gone())
  }

  /** In a session of its own, so that what ends this process and its group does not end it too. */
  static async start(stdio: 'inherit' | 'ignore'): Promise<Guard> {
    const guard = fork(MAIN, [], { detached: true, execArgv: [], stdio: [stdio, stdio, stdio, 'ipc'] })
    const ready = await Promise.race([once(guard, 'message'), once(guard, 'exit').then(() => undefined)])
    if (ready === undefined) throw failure('UNSUPPORTED', 'the process that guards programs could not be started')
    return new Guard(guard)
  }

  run(program: Program): Started {
    this.#lastId += 1
    const id = this.#lastId
    const ended = new Promise<ProgramEnd>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
    })
    this.#tell({ kind: 'run', id, program })
    return {
      ended,
      signal: (signal) => this.#tell({ kind: 'signal', id, signal }),
      end: (graceMs) => this.#tell({ kind: 'end', id, graceMs }),
    }
  }

  /** Everything may go on until then, by `machineMs`. */
  trust(untilMs: number, graceMs: number): void {
    this.#tell({ kind: 'trust', untilMs, graceMs })
  }

  /** Once everything has ended. */
  close(): void {
    if (this.#process.connected) this.#process.disconnect()
  }

  #tell(message: ToGuard): void {
    if (this.#process.connected) this.#process.send(message, () => {})
  }

  #heard(message: FromGuard): void {
    if (message.kind === 'ready') return
    if (message.kind === 'lapsed') {
      this.onLapsed()
      return
    }
    const waiting = this.#waiting.get(message.id)
    if (waiting === undefined) return
    if (message.kind === 'started') {
      waiting.pid = message.pid
      return
    }
    this.#waiting.delete(message.id)
    if (message.kind === 'ended') waiting.resolve(message)
    else waiting.reject(new NotStarted(message.code, message.message))
  }

  /** Somebody killed it: its programs must not go on without it. */
  #gone(): void {
    for (const { pid, reject } of this.#waiting.values()) {
      try {
        if (pid !== undefined) process.kill(-pid, 'SIGKILL')
      } catch {
        // It has ended meanwhile.
      }
      reject(failure('STALE', 'the process that guarded the program is gone: the program was killed'))
    }
    this.#waiting.clear()
  }
}
