// @ts-check
/** Enqueues all through a chaos run, and compares afterwards what was acknowledged with what the store has. */
import { setTimeout as sleep } from 'node:timers/promises'

const EVERY_MS = 40

export class AcknowledgedEnqueues {
  /** By the run's id: its payload. @type {Map<string, number>} */
  #numbers = new Map()
  /** @type {string[]} */
  #twice = []
  #isOver = false
  /** @type {Promise<void> | undefined} */
  #done
  #job

  /** @param {import('../../dist/index.js').Job<number>} job */
  constructor(job) {
    this.#job = job
  }

  begin() {
    this.#done = this.#enqueueAll()
  }

  async end() {
    this.#isOver = true
    await this.#done
  }

  /**
   * @param {import('../../dist/index.js').Belfry} operator
   * @param {string[]} violations
   * @returns {Promise<number>} how many acknowledged runs the store does not have
   */
  async compare(operator, violations) {
    violations.push(...this.#twice)
    let lost = 0
    for (const [id, number] of this.#numbers) {
      const run = await operator.runs.get(id)
      if (run === undefined) lost += 1
      else if (run.payload !== number) violations.push(`run ${id} was enqueued as ${number}, and is ${run.payload} now`)
    }
    return lost
  }

  get count() {
    return this.#numbers.size
  }

  async #enqueueAll() {
    for (let number = 0; !this.#isOver; number += 1) {
      const enqueued = await this.#job.enqueue(number).catch(() => undefined)
      if (enqueued !== undefined) {
        if (this.#numbers.has(enqueued.run)) this.#twice.push(`the id ${enqueued.run} was given to two enqueues`)
        this.#numbers.set(enqueued.run, number)
      }
      await sleep(EVERY_MS)
    }
  }
}
