/** Starts programs through the supervisor process, which ends them when this process no longer can (`supervisor-process.ts`). */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { failure } from '../../core/errors.js'
import type { FromSupervisor, Program, ProgramEnd, ToSupervisor } from './supervisor-messages.js'

const MAIN = fileURLToPath(new URL('./supervisor-process.js', import.meta.url))

interface Waiting {
  readonly resolve: (end: ProgramEnd) => void
  readonly reject: (error: Error) => void
  pid?: number
}

/** The program could not be started: it does not exist, or may not be executed. */
export class NotStarted extends Error {
  override readonly name = 'NotStarted'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface SupervisedProgram {
  readonly ended: Promise<ProgramEnd>
  /** Signals its process group. */
  signal(signal: NodeJS.Signals): void
  end(graceMs: number): void
}

export class Supervisor {
  /** Called when the deadline is near and the programs got SIGTERM. */
  onExpired: () => void = () => {}
  readonly #process: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0

  private constructor(child: ChildProcess) {
    this.#process = child
    child.on('message', (message: FromSupervisor) => this.#receive(message))
    child.on('exit', () => this.#killAll())
  }

  /** The supervisor is detached, so that a signal to this process's group does not end both. */
  static async start(stdio: 'inherit' | 'ignore'): Promise<Supervisor> {
    const child = fork(MAIN, [], { detached: true, execArgv: [], stdio: [stdio, stdio, stdio, 'ipc'] })
    const ready = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => undefined)])
    if (ready === undefined) throw failure('UNSUPPORTED', 'the process that supervises programs could not be started')
    return new Supervisor(child)
  }

  run(program: Program): SupervisedProgram {
    this.#lastId += 1
    const id = this.#lastId
    const ended = new Promise<ProgramEnd>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
    })
    this.#send({ kind: 'run', id, program })
    return {
      ended,
      signal: (signal) => this.#send({ kind: 'signal', id, signal }),
      end: (graceMs) => this.#send({ kind: 'end', id, graceMs }),
    }
  }

  /** Lets the programs run until this instant of `machineMs()`. */
  extend(untilMs: number, graceMs: number): void {
    this.#send({ kind: 'extend', untilMs, graceMs })
  }

  /** Ends the supervisor once all programs have ended. */
  close(): void {
    if (this.#process.connected) this.#process.disconnect()
  }

  #send(message: ToSupervisor): void {
    if (this.#process.connected) this.#process.send(message, () => {})
  }

  #receive(message: FromSupervisor): void {
    if (message.kind === 'ready') return
    if (message.kind === 'expired') {
      this.onExpired()
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

  /** The supervisor died: kill its programs, which must not run without it. */
  #killAll(): void {
    for (const { pid, reject } of this.#waiting.values()) {
      try {
        if (pid !== undefined) process.kill(-pid, 'SIGKILL')
      } catch {
        // The program has already ended.
      }
      reject(failure('STALE', 'the supervisor of the program died: the program was killed'))
    }
    this.#waiting.clear()
  }
}
