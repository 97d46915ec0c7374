// @ts-check
/** The worker processes of a chaos run, one per slot; a killed process is replaced, as by a supervisor. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { clearAfter } from '../servers/faketime.js'
import { monotonicMs } from './monotonic.js'

const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url))

/**
 * @typedef {import('node:child_process').ChildProcess} Child
 * @typedef {{ pid: number, from: number, to: number, isFrozen: boolean }} Stop a period without progress: stopped by SIGSTOP if `isFrozen`, otherwise its event loop was blocked
 * @typedef {{ pid: number, at: number }} Kill
 */

export class WorkerProcesses {
  /** @type {Kill[]} */
  kills = []
  /** @type {Stop[]} */
  stops = []
  /** Processes that exited without being asked to. @type {string[]} */
  unexpectedExits = []
  /** @type {{ child: Child, since: number, stopped: boolean, isUp: boolean }[]} */
  #slots = []
  /** @type {Set<Child>} */
  #expectedToExit = new Set()
  /** @type {Set<Child>} */
  #alive = new Set()
  #settingsOf
  #environmentOf

  /**
   * @param {number} processes
   * @param {(at: number) => object} settingsOf
   * @param {(at: number) => Record<string, string>} environmentOf
   */
  constructor(processes, settingsOf, environmentOf) {
    this.#settingsOf = settingsOf
    this.#environmentOf = environmentOf
    for (let at = 0; at < processes; at += 1) this.#spawn(at)
  }

  /** The processes that are not stopped and have been running for at least `sinceMs`. @param {number} sinceMs */
  running(sinceMs) {
    const before = monotonicMs() - sinceMs
    return this.#slots
      .filter(({ since, stopped }) => !stopped && since <= before)
      .flatMap(({ child }) => child.pid ?? [])
  }

  /** The processes that have reported that they are up; slow starters are left out. */
  up() {
    return this.#slots.filter(({ isUp, stopped }) => isUp && !stopped).flatMap(({ child }) => child.pid ?? [])
  }

  /** @param {number} pid */
  slotOf(pid) {
    return this.#slots.findIndex(({ child }) => child.pid === pid)
  }

  /** @param {number} at */
  kill(at) {
    const slot = this.#slots[at]
    if (slot?.child.pid === undefined) return
    this.#expectedToExit.add(slot.child)
    this.kills.push({ pid: slot.child.pid, at: monotonicMs() })
    slot.child.kill('SIGKILL')
    this.#spawn(at)
  }

  /** @param {number} at */
  terminate(at) {
    const slot = this.#slots[at]
    if (slot === undefined) return
    this.#expectedToExit.add(slot.child)
    slot.child.kill('SIGCONT')
    slot.child.kill('SIGTERM')
    this.#spawn(at)
  }

  /**
   * @param {number} at
   * @param {Promise<void>} over
   */
  async stop(at, over) {
    const slot = this.#slots[at]
    if (slot?.child.pid === undefined) return
    const { pid } = slot.child
    const from = monotonicMs()
    slot.stopped = true
    slot.child.kill('SIGSTOP')
    await over
    slot.child.kill('SIGCONT')
    slot.stopped = false
    slot.since = monotonicMs()
    this.stops.push({ pid, from, to: monotonicMs(), isFrozen: true })
  }

  /**
   * Blocks the event loop of a process. It then counts as stopped.
   * @param {number} at
   * @param {number} forMs
   * @param {Promise<void>} over
   */
  async block(at, forMs, over) {
    const slot = this.#slots[at]
    if (slot?.child.pid === undefined || !slot.child.connected) return
    const { pid } = slot.child
    const from = monotonicMs()
    slot.stopped = true
    slot.child.send({ blockMs: forMs })
    await over
    slot.stopped = false
    slot.since = monotonicMs()
    this.stops.push({ pid, from, to: monotonicMs(), isFrozen: false })
  }

  async killAll() {
    const gone = [...this.#alive].map(async (child) => {
      this.#expectedToExit.add(child)
      child.kill('SIGKILL')
      await once(child, 'exit')
    })
    await Promise.all(gone)
  }

  /** @param {number} at */
  #spawn(at) {
    const env = { ...process.env, ...this.#environmentOf(at) }
    const settings = JSON.stringify(this.#settingsOf(at))
    const child = spawn(process.execPath, [WORKER, settings], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    // The process may exit before a message to it is sent.
    child.on('error', () => {})
    this.#alive.add(child)
    child.on('exit', (code, signal) => {
      this.#alive.delete(child)
      if (child.pid !== undefined) clearAfter(child.pid)
      if (!this.#expectedToExit.has(child))
        this.unexpectedExits.push(`process ${at} (${child.pid}) ended: ${code ?? signal}`)
    })
    const slot = { child, since: monotonicMs(), stopped: false, isUp: false }
    child.on('message', () => {
      slot.isUp = true
    })
    this.#slots[at] = slot
  }
}
