// @ts-check
/**
 * Chaos on real processes: several instances share a store and many schedules that tick every second, while processes
 * are killed, stopped past their lease and started again, by a seed. Then all is let come to rest, and the log that
 * the handlers wrote is compared with what the store says.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createBelfry } from '../../dist/index.js'
import { openStore } from './stores.js'
import { verify } from './verify.js'

const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url))
const LEASE_MS = 2_000

/**
 * @typedef {object} WorkerSettings
 * @property {import('./stores.js').StoreKind} store
 * @property {string} log
 * @property {number} lease
 *
 * @typedef {object} ChaosOptions
 * @property {import('./stores.js').StoreKind} store
 * @property {number} seconds
 * @property {number} processes
 * @property {number} schedules
 * @property {number} seed
 * @property {(line: string) => void} [say]
 *
 * @typedef {{ from: number, to: number, pid: number }} Stop
 * @typedef {import('./verify.js').Findings} Findings
 */

/** Small and seeded: the order of events is repeatable, their timing is not. @param {number} seed */
function randomFrom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * @param {ChaosOptions} options
 * @returns {Promise<Findings>}
 */
export async function chaos({ store, seconds, processes, schedules, seed, say = () => {} }) {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-chaos-'))
  const log = join(folder, 'handlers.jsonl')
  writeFileSync(log, '')
  const settings = JSON.stringify({ store, log, lease: LEASE_MS })
  const operator = createBelfry({ store: await openStore(store), roles: [] })
  await operator.start()
  /** @type {import('node:child_process').ChildProcess[]} */
  const crew = []
  /** @type {Stop[]} */
  const stops = []
  const hire = () => spawn(process.execPath, [WORKER, settings], { stdio: ['ignore', 'ignore', 'inherit'] })
  try {
    for (let at = 0; at < processes; at += 1) crew.push(hire())
    await operator.schedules.putMany(
      Array.from({ length: schedules }, (_, at) => /** @type {const} */ ([`s/${at}`, scheduleInput(at)])),
    )
    await disturb({ crew, stops, hire, seconds, random: randomFrom(seed), say })
    say('coming to rest')
    const ids = Array.from({ length: schedules }, (_, at) => `s/${at}`)
    for (const id of ids) await operator.schedules.pause(id)
    await comeToRest(operator)
    const lines = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    return await verify(operator, ids, lines, stops)
  } finally {
    for (const child of crew) child.kill('SIGKILL')
    await operator.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A tenth are exclusive, each with its own key. @param {number} at */
function scheduleInput(at) {
  const solo = at % 10 === 0
  return {
    every: '1s',
    job: solo ? 'solo' : 'quick',
    payload: { at },
    missed: { policy: /** @type {const} */ ('all') },
  }
}

/**
 * @param {object} options
 * @param {import('node:child_process').ChildProcess[]} options.crew
 * @param {Stop[]} options.stops
 * @param {() => import('node:child_process').ChildProcess} options.hire
 * @param {number} options.seconds
 * @param {() => number} options.random
 * @param {(line: string) => void} options.say
 */
async function disturb({ crew, stops, hire, seconds, random, say }) {
  const until = Date.now() + seconds * 1_000
  /** @type {Promise<void>[]} */
  const resumptions = []
  while (Date.now() < until) {
    await sleep(500 + random() * 1_500)
    const at = Math.floor(random() * crew.length)
    const child = crew[at]
    if (child?.pid === undefined) continue
    const dice = random()
    if (dice < 0.5) {
      say(`kill -9 ${child.pid}`)
      child.kill('SIGKILL')
      crew[at] = hire()
    } else if (dice < 0.8) resumptions.push(stopFor(child, LEASE_MS * (1.2 + random()), stops, say))
    else if (dice < 0.9) {
      say(`SIGTERM ${child.pid}`)
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      crew[at] = hire()
    }
  }
  await Promise.all(resumptions)
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {number} ms
 * @param {Stop[]} stops
 * @param {(line: string) => void} say
 */
async function stopFor(child, ms, stops, say) {
  const { pid } = child
  if (pid === undefined) return
  say(`SIGSTOP ${pid} for ${Math.round(ms)} ms`)
  const from = Date.now()
  child.kill('SIGSTOP')
  await sleep(ms)
  child.kill('SIGCONT')
  stops.push({ pid, from, to: Date.now() })
}

/**
 * Nothing may be left unfinished.
 * @param {import('../../dist/index.js').Belfry} operator
 */
async function comeToRest(operator) {
  const until = Date.now() + 60_000
  for (;;) {
    const { items } = await operator.runs.list({ states: ['waiting', 'ready', 'running'], limit: 10 })
    if (items.length === 0) return
    if (Date.now() > until) {
      throw new Error(`still unfinished a minute later: ${JSON.stringify(items.slice(0, 3))}`)
    }
    await sleep(250)
  }
}
