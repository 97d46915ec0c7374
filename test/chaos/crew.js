// @ts-check
/** The worker processes of a chaos run, one per place; a killed process is replaced, as by a supervisor. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { clearAfter } from '../servers/faketime.js'
import { monotonicMs } from './monotonic.js'

const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url))

/**
 * @typedef {import('node:child_process').ChildProcess} Child
 * @typedef {{ pid: number, from: number, to: number, isFrozen: boolean }} Stop by SIGSTOP when it is frozen, else its event loop was blocked
 * @typedef {{ pid: number, at: number }} Kill
 */

export class Crew {
  /** @type {Kill[]} */
  kills = []
  /** @type {Stop[]} */
  stops = []
  /** Processes that exited without being asked to. @type {string[]} */
  deserters = []
  /** @type {{ child: Child, since: number, stopped: boolean, isUp: boolean }[]} */
  #places = []
  /** @type {Set<Child>} */
  #dismissed = new Set()
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
    for (let at = 0; at < processes; at += 1) this.#hire(at)
  }

  /** The processes that are not stopped and have been running for long enough. @param {number} sinceMs */
  atWork(sinceMs) {
    const before = monotonicMs() - sinceMs
    return this.#places
      .filter(({ since, stopped }) => !stopped && since <= before)
      .flatMap(({ child }) => child.pid ?? [])
  }

  /** The processes that have reported that they are up; slow starters are left out. */
  takingPart() {
    return this.#places.filter(({ isUp, stopped }) => isUp && !stopped).flatMap(({ child }) => child.pid ?? [])
  }

  /** @param {number} pid */
  placeOf(pid) {
    return this.#places.findIndex(({ child }) => child.pid === pid)
  }

  /** @param {number} at */
  kill(at) {
    const place = this.#places[at]
    if (place?.child.pid === undefined) return
    this.#dismissed.add(place.child)
    this.kills.push({ pid: place.child.pid, at: monotonicMs() })
    place.child.kill('SIGKILL')
    this.#hire(at)
  }

  /** @param {number} at */
  terminate(at) {
    const place = this.#places[at]
    if (place === undefined) return
    this.#dismissed.add(place.child)
    place.child.kill('SIGCONT')
    place.child.kill('SIGTERM')
    this.#hire(at)
  }

  /**
   * @param {number} at
   * @param {Promise<void>} over
   */
  async stop(at, over) {
    const place = this.#places[at]
    if (place?.child.pid === undefined) return
    const { pid } = place.child
    const from = monotonicMs()
    place.stopped = true
    place.child.kill('SIGSTOP')
    await over
    place.child.kill('SIGCONT')
    place.stopped = false
    place.since = monotonicMs()
    this.stops.push({ pid, from, to: monotonicMs(), isFrozen: true })
  }

  /**
   * Blocks the event loop of a process. It then counts as stopped.
   * @param {number} at
   * @param {number} forMs
   * @param {Promise<void>} over
   */
  async block(at, forMs, over) {
    const place = this.#places[at]
    if (place?.child.pid === undefined || !place.child.connected) return
    const { pid } = place.child
    const from = monotonicMs()
    place.stopped = true
    place.child.send({ blockMs: forMs })
    await over
    place.stopped = false
    place.since = monotonicMs()
    this.stops.push({ pid, from, to: monotonicMs(), isFrozen: false })
  }

  async dismissAll() {
    const gone = [...this.#alive].map(async (child) => {
      this.#dismissed.add(child)
      child.kill('SIGKILL')
      await once(child, 'exit')
    })
    await Promise.all(gone)
  }

  /** @param {number} at */
  #hire(at) {
    const env = { ...process.env, ...this.#environmentOf(at) }
    const settings = JSON.stringify(this.#settingsOf(at))
    const child = spawn(process.execPath, [WORKER, settings], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    // The process may exit before a message to it is sent.
    child.on('error', () => {})
    this.#alive.add(child)
    child.on('exit', (code, signal) => {
      this.#alive.delete(child)
      if (child.pid !== undefined) clearAfter(child.pid)
      if (!this.#dismissed.has(child)) this.deserters.push(`process ${at} (${child.pid}) ended: ${code ?? signal}`)
    })
    const place = { child, since: monotonicMs(), stopped: false, isUp: false }
    child.on('message', () => {
      place.isUp = true
    })
    this.#places[at] = place
  }
}
