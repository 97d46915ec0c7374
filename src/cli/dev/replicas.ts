import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Style } from '../terminal/style.js'
import { clockTime, type RunNote, runLine } from './run-lines.js'

/** How long a replica may take to stop. */
const STOP_MS = 2_000

/** How long a replica usually takes to start. The tick of `hello` lies this far ahead, so that it starts on time. */
const UP_MS = 400

const SCRIPT = fileURLToPath(new URL('./replica-process.js', import.meta.url))

/** Several processes on one file, named #1, #2, #3 … after the keys that kill and restart them. */
export class Replicas {
  readonly #path: string
  readonly #names: readonly string[]
  readonly #style: Style
  readonly #print: (line: string | undefined) => void
  readonly #children = new Map<string, ChildProcess>()
  readonly #helloAt = Date.now() + UP_MS
  #stopped = false

  constructor(path: string, count: number, style: Style, print: (line: string | undefined) => void) {
    this.#path = path
    this.#names = Array.from({ length: count }, (_, at) => `#${at + 1}`)
    this.#style = style
    this.#print = print
  }

  /** Starts the first replica alone, so that it shows output soon, and then the others. */
  async start(): Promise<void> {
    const [first = '#1', ...others] = this.#names
    await this.#spawn(first)
    if (this.#stopped) return
    const missing = others.filter((name) => !this.#children.has(name))
    await Promise.all(missing.map((name) => this.#spawn(name)))
  }

  /** A number key kills the replica with that number, or restarts it. */
  press(key: string): void {
    const name = this.#names[Number(key) - 1]
    if (name === undefined) return
    const child = this.#children.get(name)
    if (child === undefined) {
      this.#say(name, this.#style.green('restarting'))
      void this.#spawn(name)
    } else {
      this.#children.delete(name)
      child.kill('SIGKILL')
      this.#say(name, this.#style.red('killed (kill -9): its runs are taken over in 3 to 5 s'))
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(
      [...this.#children.values()].map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        child.kill('SIGTERM')
        // A stopped (SIGSTOP) or hanging replica is killed.
        const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
        await once(child, 'exit')
        clearTimeout(timer)
      }),
    )
  }

  /** Kills all replicas at once. */
  kill(): void {
    for (const child of this.#children.values()) child.kill('SIGKILL')
  }

  async #spawn(name: string): Promise<void> {
    const child = fork(SCRIPT, [this.#path, String(this.#helloAt)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#children.set(name, child)
    await new Promise<void>((resolve) => {
      child.once('exit', (code, signal) => {
        if (this.#children.get(name) === child) {
          this.#children.delete(name)
          if (code !== 0) this.#say(name, this.#style.red(`ended by ${signal ?? `itself, with code ${code}`}`))
        }
        resolve()
      })
      child.on('message', (message: RunNote | 'ready') => {
        if (message === 'ready') resolve()
        else this.#print(runLine(message, name, this.#style))
      })
    })
  }

  #say(name: string, message: string): void {
    this.#print(`${this.#style.dim(clockTime(Date.now(), true))}  ${this.#style.cyan(name)}  ${message}`)
  }
}
