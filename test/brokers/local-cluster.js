// @ts-check
/** The server processes of a cluster on this machine. All kinds of brokers use it. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServerProcess } from './server-process.js'

const PATIENCE_MS = 90_000

export class LocalCluster {
  /** @type {Map<string, ServerProcess>} */
  #processes = new Map()
  #names

  /** @param {string} kind @param {readonly string[]} names the servers that a scenario may stop, kill or freeze */
  constructor(kind, names) {
    this.root = mkdtempSync(join(tmpdir(), `belfry-${kind}-cluster-`))
    this.#names = names
  }

  get nodes() {
    return this.#names
  }

  /** @param {string} name */
  folder(name) {
    const folder = join(this.root, name)
    mkdirSync(folder, { recursive: true })
    return folder
  }

  /**
   * @param {string} name
   * @param {readonly string[]} command
   * @param {Record<string, string>} [environment]
   */
  add(name, command, environment = {}) {
    this.#processes.set(name, new ServerProcess({ name, folder: this.folder(name), command, environment }))
  }

  /** Starts all servers, and waits until the cluster is healthy. @param {() => Promise<void>} healthy */
  async startAll(healthy) {
    try {
      await Promise.all([...this.#processes.values()].map((each) => each.start()))
      await healthy()
    } catch (error) {
      const said = [...this.#processes.values()].map((each) => each.said).join('\n')
      await this.stop()
      throw new Error(`the cluster did not start: ${said}`, { cause: error })
    }
  }

  /** @param {string} name @returns {Promise<void>} */
  terminate(name) {
    return this.process(name).end('SIGTERM')
  }

  /** @param {string} name @returns {Promise<void>} */
  kill(name) {
    return this.process(name).end('SIGKILL')
  }

  /** @param {string} name @returns {Promise<void>} */
  start(name) {
    return this.process(name).start()
  }

  /** @param {string} name */
  async freeze(name) {
    this.process(name).signal('SIGSTOP')
  }

  /** @param {string} name */
  async thaw(name) {
    this.process(name).signal('SIGCONT')
  }

  async stop() {
    await Promise.all([...this.#processes.values()].map((each) => each.end('SIGKILL')))
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 })
  }

  /** @param {string} name */
  process(name) {
    const found = this.#processes.get(name)
    if (found === undefined) throw new Error(`there is no ${name}: there is ${[...this.#processes.keys()].join(', ')}`)
    return found
  }
}

/**
 * Retries an attempt that throws, until it succeeds or the time is over.
 * @template T
 * @param {() => Promise<T>} attempt
 * @returns {Promise<T>}
 */
export async function eventually(attempt, patienceMs = PATIENCE_MS) {
  const deadline = Date.now() + patienceMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await sleep(300)
    }
  }
}
