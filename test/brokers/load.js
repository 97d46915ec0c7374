// @ts-check
/**
 * A load: schedules that tick once a second, all equally often, in a store of their own, and a Belfry process that
 * delivers them. The expected messages follow by arithmetic, not from Belfry's own records.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createBelfry } from '../../dist/index.js'
import { openLoadStore } from './load-store.js'

const PUBLISHER = fileURLToPath(new URL('./publisher.js', import.meta.url))
const AT_ONCE = 500
const SAID_WITHIN_MS = 90_000
const UNFINISHED = /** @type {const} */ (['waiting', 'ready', 'running'])

/**
 * @typedef {object} LoadOptions
 * @property {string} name
 * @property {string} client
 * @property {import('./cluster.js').SinkRecipe} sink
 * @property {number} perSecond how many schedules tick each second
 * @property {number} seconds
 * @property {boolean} [ordered]
 * @property {boolean} [isSpread] the ticks are spread over each second; by default all are due at the same instant
 * @property {{ url: string, schema: string }} [postgres] by default the store is a SQLite file
 */

export class Load {
  #options
  #folder = mkdtempSync(join(tmpdir(), 'belfry-load-'))
  #belfry
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #publisher
  #firstTick = 0
  /** Schedules whose events must fail permanently. @type {string[]} */
  refusals = []

  /** @param {LoadOptions} options */
  constructor(options) {
    this.#options = options
    // This sink delivers nothing: put() only needs to know whether the sink is ordered.
    const out = { deliver: async () => [], delivery: { ordered: this.isOrdered } }
    this.#belfry = createBelfry({ store: openLoadStore(this.#store), roles: [], sinks: { out } })
  }

  get name() {
    return this.#options.name
  }

  get client() {
    return this.#options.client
  }

  get isOrdered() {
    return this.#options.ordered === true
  }

  get firstTick() {
    return this.#firstTick
  }

  /** Puts the schedules so that all first ticks are within the same second, and starts a process. */
  async start() {
    const { perSecond, seconds } = this.#options
    this.startProcess()
    const putMs = 3_000 + perSecond * 2
    this.#firstTick = Math.ceil((Date.now() + putMs) / 1_000) * 1_000
    const timeline = (/** @type {number} */ at) => {
      const offsetMs = this.#options.isSpread === true ? Math.floor((at * 1_000) / perSecond) : 0
      const [startsAt, endsAt] = [this.#firstTick + offsetMs, this.#lastTick(seconds) + offsetMs]
      return { every: '1s', startsAt: new Date(startsAt), endsAt: new Date(endsAt) }
    }
    const rules = /** @type {const} */ ({ missed: { policy: 'all' }, onFinish: 'keep', keep: 'failures' })
    for (let first = 0; first < perSecond; first += AT_ONCE) {
      const all = Array.from({ length: Math.min(AT_ONCE, perSecond - first) }, (_, index) => first + index)
      await this.#belfry.schedules.putMany(
        all.map((at) => {
          const id = scheduleName(at)
          return [id, { ...timeline(at), ...rules, to: 'out', payload: { id, text: 'ünïcode ✓' } }]
        }),
      )
    }
  }

  /**
   * Puts a schedule whose events the broker refuses. It fires for 8 s, so that some of its events fail permanently
   * during the load.
   * @param {string} id
   * @param {object} options
   */
  async putRefused(id, options) {
    this.refusals.push(id)
    const timeline = { every: '1s', endsAt: new Date(Date.now() + 8_000) }
    await this.#belfry.schedules.put(id, { ...timeline, to: 'out', onFinish: 'keep', keep: 'failures', ...options })
  }

  /**
   * Resolves to true when the output of the processes matches, to false after `SAID_WITHIN_MS`.
   * @param {RegExp} words
   */
  async says(words) {
    const deadline = Date.now() + SAID_WITHIN_MS
    while (!words.test(this.said)) {
      if (Date.now() > deadline) return false
      await sleep(200)
    }
    return true
  }

  startProcess() {
    const { sink, ordered = false } = this.#options
    const job = JSON.stringify({ store: this.#store, ordered, sink })
    const env = { ...process.env, ...sink.environment }
    const child = spawn(sink.runtime ?? process.execPath, [PUBLISHER, job], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const output of [child.stdout, child.stderr]) {
      output.on('data', (chunk) => appendFileSync(this.#log, chunk))
    }
    this.#publisher = child
  }

  async killProcess() {
    const child = this.#publisher
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  /** Stops the process as a deployment does, and starts another. */
  async restartProcess() {
    const child = this.#publisher
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    }
    this.startProcess()
  }

  /** Waits until two seconds after the first tick, when the first events should have been delivered. */
  async underWay() {
    await sleep(Math.max(this.#firstTick + 2_000 - Date.now(), 0))
  }

  /** Resolves once every tick was recorded and then delivered or permanently failed. @param {number} withinMs */
  async settled(withinMs) {
    const deadline = Date.now() + withinMs
    await sleep(Math.max(this.#lastTick(this.#options.seconds) + 2_000 - Date.now(), 0))
    for (;;) {
      const { items: runs } = await this.#belfry.runs.list({ state: UNFINISHED, limit: 3 })
      const { items: schedules } = await this.#belfry.schedules.list({ state: 'active', limit: 3 })
      if (runs.length === 0 && schedules.length === 0) return
      if (Date.now() > deadline) {
        const left = JSON.stringify({ runs, schedules })
        throw new Error(`${this.name}: not settled ${withinMs} ms after the load: ${left}\n${this.said}`)
      }
      await sleep(200)
    }
  }

  async deadLetters() {
    const { items } = await this.#belfry.runs.list({ state: ['failed'], limit: 1_000 })
    return items
  }

  /** The ids of all events of the load. */
  expected() {
    const { perSecond, seconds } = this.#options
    const ids = new Set()
    for (let at = 0; at < perSecond; at += 1) {
      for (let tick = this.#firstTick; tick <= this.#lastTick(seconds); tick += 1_000) {
        ids.add(`${scheduleName(at)}-${tick / 1_000}`)
      }
    }
    return ids
  }

  /** As Belfry's processes measured them: the longest delay of an acknowledgement, and the longest time without one. */
  get acknowledged() {
    const worst = { maxMs: 0, silentMs: 0 }
    for (const line of readFileSync(this.#log, 'utf8').split('\n')) {
      if (!line.startsWith('{"times"')) continue
      const { times } = JSON.parse(line)
      worst.maxMs = Math.max(worst.maxMs, times.maxMs)
      worst.silentMs = Math.max(worst.silentMs, times.silentMs)
    }
    return worst
  }

  /** How many outages of the sink the log reports. */
  get outages() {
    const lines = readFileSync(this.#log, 'utf8').split('\n')
    return lines.filter((line) => line.includes('sink \\"out\\" is unreachable')).length
  }

  /** The last lines of the processes' output. */
  get said() {
    try {
      return readFileSync(this.#log, 'utf8').slice(-3_000)
    } catch {
      return ''
    }
  }

  async stop() {
    await this.killProcess()
    await this.#belfry.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** @returns {import('./load-store.js').LoadStore} */
  get #store() {
    const { postgres } = this.#options
    return postgres === undefined ? { file: join(this.#folder, 'belfry.db') } : postgres
  }

  get #log() {
    return join(this.#folder, 'log')
  }

  #lastTick(/** @type {number} */ seconds) {
    return this.#firstTick + (seconds - 1) * 1_000
  }
}

function scheduleName(/** @type {number} */ at) {
  return `order/${at}`
}
