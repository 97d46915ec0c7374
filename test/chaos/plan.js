// @ts-check
/** The faults of a chaos run, all decided before it begins: the same seed gives the same plan. */
import { randomFrom } from './random.js'

/**
 * Faults of processes: `kill` (SIGKILL), `stop` past the lease and continue, `term` (SIGTERM), `block` the event loop.
 *
 * Faults of one process's connections: `cut` in the middle of a request, `lose` the reply to an executed request,
 * `sever` and refuse for a while, `delay`, and half-open connections: `mute` (nothing that the process sends arrives)
 * and `deaf` (the process receives nothing).
 *
 * Faults of the store: `crash` and restart, `pause` all clients, `flush` the script cache, and `failover` (kill a
 * server, so that its replica is promoted).
 *
 * @typedef {'kill' | 'stop' | 'term' | 'block' | 'cut' | 'lose' | 'sever' | 'delay' | 'mute' | 'deaf' | 'pause' | 'flush' | 'crash' | 'failover'} FaultKind
 *
 * @typedef {object} Fault
 * @property {number} atMs since the chaos began
 * @property {FaultKind} kind
 * @property {number} process which one, by its slot
 * @property {number} forMs
 */

/** Faults of processes, with any store. */
export const PROCESS_FAULTS = /** @type {const} */ (['kill', 'stop', 'term', 'block'])
/** Faults of connections, for stores that the processes reach through a proxy. */
export const CONNECTION_FAULTS = /** @type {const} */ (['cut', 'lose', 'sever', 'delay', 'mute', 'deaf'])

/** The relative frequency of each fault. */
const WEIGHTS = {
  kill: 5,
  stop: 3,
  term: 1,
  block: 3,
  cut: 2,
  lose: 3,
  sever: 1,
  delay: 1,
  mute: 2,
  deaf: 2,
  flush: 1,
  pause: 1,
}

/** The duration of each fault, in leases: from, to. @type {Partial<Record<FaultKind, [number, number]>>} */
const LEASES = {
  stop: [1.2, 2.2],
  block: [0.2, 2.2],
  mute: [0.3, 2.2],
  deaf: [0.3, 2.2],
  sever: [0.2, 1.5],
  delay: [0.2, 0.8],
  pause: [0.2, 1.3],
  crash: [0.1, 1.5],
  failover: [0.1, 0.5],
}

/** The store crashes or fails over about this often, and at least once. */
const CRASH_EVERY_MS = 30_000
const CRASHES = /** @type {const} */ (['crash', 'failover'])

/** Faults of the store itself rather than of a process or its connections. @type {readonly FaultKind[]} */
const OF_THE_STORE = ['crash', 'failover', 'pause', 'flush']

/**
 * @param {object} options
 * @param {number} options.seed
 * @param {number} options.seconds
 * @param {number} options.processes
 * @param {number} options.leaseMs
 * @param {readonly FaultKind[]} options.kinds
 * @returns {Fault[]}
 */
export function planFaults({ seed, seconds, processes, leaseMs, kinds }) {
  const random = randomFrom(seed)
  const untilMs = seconds * 1_000
  const lots = Object.entries(WEIGHTS).flatMap(([kind, weight]) =>
    kinds.includes(/** @type {FaultKind} */ (kind)) ? Array.from({ length: weight }, () => kind) : [],
  )
  /** @param {FaultKind} kind @param {number} atMs @returns {Fault} */
  const fault = (kind, atMs) => {
    const [from, to] = LEASES[kind] ?? [0, 0]
    const process = Math.floor(random() * processes)
    return { atMs: Math.round(atMs), kind, process, forMs: Math.round(leaseMs * (from + random() * (to - from))) }
  }
  /** @type {Fault[]} */
  const faults = []
  for (let atMs = 2_000 + random() * 1_000; atMs < untilMs; atMs += 400 + random() * 1_200) {
    const kind = /** @type {FaultKind} */ (lots[Math.floor(random() * lots.length)])
    faults.push(fault(kind, atMs))
  }
  for (const kind of CRASHES.filter((each) => kinds.includes(each))) {
    const crashes = Math.max(1, Math.round(untilMs / CRASH_EVERY_MS))
    for (let at = 0; at < crashes; at += 1) {
      faults.push(fault(kind, (untilMs / crashes) * (at + 0.3 + random() * 0.3)))
    }
  }
  // Adds the kinds that were not drawn, so that even a short plan has every kind of fault.
  for (const kind of kinds.filter((each) => !faults.some((planned) => planned.kind === each))) {
    faults.push(fault(kind, untilMs * (0.2 + random() * 0.7)))
  }
  return faults.sort((one, other) => one.atMs - other.atMs)
}

/** @param {Fault} fault */
export function describeFault({ atMs, kind, process, forMs }) {
  const where = OF_THE_STORE.includes(kind) ? 'the store' : `process ${process}`
  return `${(atMs / 1_000).toFixed(1)} s: ${kind} ${where}${forMs > 0 ? ` for ${forMs} ms` : ''}`
}
