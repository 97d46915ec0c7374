/** Starts and steers processes that compete for the lock `shared` of one store: see `contender.js`. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LockOptions } from '../../src/index.js'
import type { StoreLocation } from './store-locations.js'

const PROGRAM = fileURLToPath(new URL('./contender.js', import.meta.url))

export interface ContenderMessage {
  readonly is: 'ready' | 'held' | 'waiting' | 'over'
  readonly code?: string
  readonly value?: unknown
  readonly lost?: readonly string[]
}

export class Contender {
  readonly #process: ChildProcess
  readonly #messages: ContenderMessage[] = []

  constructor(location: StoreLocation) {
    this.#process = fork(PROGRAM, [JSON.stringify(location)])
    this.#process.on('message', (message) => void this.#messages.push(message as ContenderMessage))
  }

  /** Waits for a message of this kind from the process. */
  async received(is: ContenderMessage['is']): Promise<ContenderMessage> {
    for (;;) {
      const message = this.#messages.find((each) => each.is === is)
      if (message !== undefined) return message
      await Promise.race([once(this.#process, 'message'), this.#ended()])
    }
  }

  async #ended(): Promise<never> {
    await once(this.#process, 'exit')
    throw new Error('a contender ended before it was told to')
  }

  work(options: LockOptions, blockedUntil?: string): void {
    this.#process.send({ task: 'work', options, blockedUntil })
  }

  /** Resolves when each of its waiters is queued. */
  async wait(options: LockOptions, times: number): Promise<void> {
    this.#process.send({ task: 'wait', options, times })
    await this.received('waiting')
  }

  finish(): void {
    this.#process.send({ task: 'finish' })
  }

  /** Simulates a long pause of the machine or the process. */
  pause(): void {
    this.#process.kill('SIGSTOP')
  }

  resume(): void {
    this.#process.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exit = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exit
  }
}
