// @ts-check
/**
 * Chaos test on real processes: several instances share a store and many schedules that tick every second, while
 * processes are killed, stopped past their lease and restarted, connections break and the store itself crashes,
 * following a plan that a seed reproduces. Afterwards all runs are allowed to finish, and the handlers' log is compared
 * with the store's contents.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../../dist/index.js'
import { Crew } from './crew.js'
import { monotonicMs } from './monotonic.js'
import { describeFault, planFaults } from './plan.js'
import { SOLO, scheduleInput } from './schedules.js'
import { openSite } from './sites.js'
import { makeEffectsTable, openStore, readEffects } from './stores.js'
import { verify } from './verify.js'

/** How soon all processes must beat again after a store outage. */
const RECOVERY_MS = 30_000
/** How long a process may take to detect half-open connections and replace them. */
const SILENT_MS = 15_000

/**
 * @typedef {object} WorkerSettings
 * @property {import('./stores.js').StoreKind} store
 * @property {string} log
 * @property {number} lease
 * @property {number} place
 *
 * @typedef {object} ChaosOptions
 * @property {import('./sites.js').SiteKind} store
 * @property {number} seconds
 * @property {number} processes
 * @property {number} schedules
 * @property {number} seed
 * @property {(line: string) => void} [say]
 *
 * @typedef {import('./verify.js').Findings} Findings
 * @typedef {{ from: number, to: number }} Outage
 */

/** Events of the chaos run that the handlers do not log. */
class History {
  /** Store outages, each until all processes were beating again. @type {Outage[]} */
  outages = []
  /** The number of current outages, and the end of the last one. */
  down = 0
  backAt = 0
  /** The time until all processes were beating again, after each outage. @type {number[]} */
  recoveries = []
  /** Until when no heartbeat can be expected from the process in a place. @type {Map<number, number>} */
  silentUntil = new Map()
  /** Exceeded time limits. @type {string[]} */
  late = []
}

/**
 * @param {ChaosOptions} options
 * @returns {Promise<Findings>}
 */
export async function chaos({ store: kind, seconds, processes, schedules, seed, say = () => {} }) {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-chaos-'))
  const log = join(folder, 'handlers.jsonl')
  writeFileSync(log, '')
  const site = await openSite(kind, processes, seed)
  const { leaseMs } = site
  const plan = planFaults({ seed, seconds, processes, leaseMs, kinds: site.kinds })
  for (const fault of plan) say(`planned: ${describeFault(fault)}`)
  const store = await openStore(site.store)
  const operator = createBelfry({ store, roles: [], logger: { debug() {}, info() {}, warn() {}, error() {} } })
  operator.job('solo', { ...SOLO, run: () => {} })
  await operator.start()
  await makeEffectsTable(site.store)
  const history = new History()
  const settingsOf = (/** @type {number} */ place) => ({ store: site.storeOf(place), log, lease: leaseMs, place })
  const crew = new Crew(processes, settingsOf, site.environmentOf)
  try {
    const ids = Array.from({ length: schedules }, (_, at) => `s/${at}`)
    await operator.schedules.putMany(ids.map((id, at) => /** @type {const} */ ([id, scheduleInput(at)])))
    await disturb({ plan, seconds, crew, site, store, operator, history, say })
    await killTheBusiest(operator, crew, leaseMs, say)
    say('coming to rest')
    for (const id of ids) await insist(() => operator.schedules.pause(id))
    await comeToRest(operator)
    await untilAllTakePart({ operator, store, crew, history, expected: crew.atWork(0) })
    const lines = readLines(log)
    const effects = store.supports.transactions ? await readEffects(site.store) : undefined
    const skews = Array.from({ length: processes }, (_, at) => site.skewOf(at))
    const { clockErrorMs, frozenHoldsStore } = site
    return await verify({
      operator,
      ids,
      lines,
      effects,
      crew,
      history,
      skews,
      leaseMs,
      clockErrorMs,
      frozenHoldsStore,
    })
  } finally {
    await crew.dismissAll()
    await operator.stop()
    await site.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Injects each planned fault at its time. Longer faults overlap with later ones.
 * @param {object} options
 * @param {import('./plan.js').Fault[]} options.plan
 * @param {number} options.seconds
 * @param {Crew} options.crew
 * @param {import('./sites.js').Site} options.site
 * @param {import('../../dist/index.js').Store} options.store
 * @param {import('../../dist/index.js').Belfry} options.operator
 * @param {History} options.history
 * @param {(line: string) => void} options.say
 */
async function disturb({ plan, seconds, crew, site, store, operator, history, say }) {
  const began = monotonicMs()
  /** @type {Promise<void>[]} */
  const pending = []
  for (const fault of plan) {
    await sleep(Math.max(began + fault.atMs - monotonicMs(), 0))
    say(describeFault(fault))
    if (fault.kind === 'kill') crew.kill(fault.process)
    else if (fault.kind === 'term') crew.terminate(fault.process)
    else if (fault.kind === 'stop') pending.push(crew.stop(fault.process, sleep(fault.forMs)))
    else if (fault.kind === 'block') pending.push(crew.block(fault.process, fault.forMs, sleep(fault.forMs)))
    else pending.push(strike(fault, { crew, site, store, operator, history, say }))
  }
  await sleep(Math.max(began + seconds * 1_000 - monotonicMs(), 0))
  await Promise.all(pending)
}

/**
 * Kills one more process while it has runs and no other fault is active, so that at least one takeover can always be
 * measured.
 * @param {import('../../dist/index.js').Belfry} operator
 * @param {Crew} crew
 * @param {number} leaseMs
 * @param {(line: string) => void} say
 */
async function killTheBusiest(operator, crew, leaseMs, say) {
  await sleep(leaseMs * 1.5)
  for (const until = monotonicMs() + 20_000; monotonicMs() < until; await sleep(100)) {
    const pids = new Map((await insist(() => operator.instances())).map(({ id, pid }) => [id, pid]))
    const { items } = await insist(() => operator.runs.list({ states: ['running'], job: 'slow', limit: 100 }))
    const running = items.flatMap(({ instance }) => pids.get(instance ?? '') ?? [])
    const countOf = (/** @type {number} */ pid) => running.filter((one) => one === pid).length
    const busiest = crew.atWork(leaseMs).sort((one, other) => countOf(other) - countOf(one))[0]
    if (busiest === undefined || countOf(busiest) === 0) continue
    say(`kill -9 of the busiest, ${busiest}`)
    crew.kill(crew.placeOf(busiest))
    return
  }
}

/**
 * @param {import('./plan.js').Fault} fault
 * @param {Omit<Parameters<typeof disturb>[0], 'plan' | 'seconds'>} options
 */
async function strike(fault, { crew, site, store, operator, history, say }) {
  if (!site.outages.includes(fault.kind)) {
    if (fault.kind === 'mute' || fault.kind === 'deaf') {
      history.silentUntil.set(fault.process, monotonicMs() + fault.forMs + SILENT_MS)
    }
    return site.strike(fault, (ms) => sleep(ms))
  }
  const outage = { from: monotonicMs(), to: Number.POSITIVE_INFINITY }
  // Processes that start during the outage take longer; only those that were already beating must recover without a
  // restart.
  const expected = crew.takingPart()
  history.outages.push(outage)
  history.down += 1
  await site.strike(fault, (ms) => sleep(ms))
  history.down -= 1
  history.backAt = monotonicMs()
  const tookMs = await untilAllTakePart({ operator, store, crew, history, expected })
  outage.to = monotonicMs()
  if (tookMs !== undefined) say(`everybody takes part again, ${tookMs} ms after the store was back`)
}

/**
 * Waits until every running process beats again without a restart, and returns the time since the end of the last
 * outage.
 * @param {{ expected: readonly number[] } & Pick<Parameters<typeof disturb>[0], 'operator' | 'store' | 'crew' | 'history'>} options
 */
async function untilAllTakePart({ operator, store, crew, history, expected }) {
  const from = monotonicMs()
  /** The time on the store's clock, once the store answers. @type {number | undefined} */
  let since
  for (;;) {
    since ??= await store.now().catch(() => undefined)
    const instances = await operator.instances().catch(() => [])
    const beating = new Set(instances.filter(({ beatAt }) => beatAt >= (since ?? beatAt + 1)).map(({ pid }) => pid))
    // Processes that were killed or stopped meanwhile are not waited for.
    const atWork = new Set(crew.atWork(0))
    const isSilent = (/** @type {number} */ pid) => monotonicMs() < (history.silentUntil.get(crew.placeOf(pid)) ?? 0)
    const missing = expected.filter((pid) => atWork.has(pid) && !beating.has(pid) && !isSilent(pid))
    // During another outage no process can recover.
    const tookMs = history.down > 0 ? 0 : Math.round(monotonicMs() - Math.max(from, history.backAt))
    if (missing.length === 0) {
      history.recoveries.push(tookMs)
      return tookMs
    }
    if (tookMs > RECOVERY_MS) {
      history.late.push(`processes ${missing.join(', ')} do not take part ${tookMs} ms after the store was back`)
      return undefined
    }
    await sleep(50)
  }
}

/**
 * Retries an operator's call, because the operator may still be reconnecting, too.
 * @template Result
 * @param {() => Promise<Result>} work
 * @returns {Promise<Result>}
 */
async function insist(work) {
  for (const until = monotonicMs() + RECOVERY_MS; ; await sleep(100)) {
    try {
      return await work()
    } catch (error) {
      if (monotonicMs() > until) throw error
    }
  }
}

/** @param {string} log @returns {import('./verify.js').Line[]} */
function readLines(log) {
  const text = readFileSync(log, 'utf8').trim()
  return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line))
}

/** Waits until no run is unfinished. @param {import('../../dist/index.js').Belfry} operator */
async function comeToRest(operator) {
  const until = monotonicMs() + 60_000
  for (;;) {
    const { items } = await insist(() => operator.runs.list({ states: ['waiting', 'ready', 'running'], limit: 10 }))
    if (items.length === 0) return
    if (monotonicMs() > until) {
      throw new Error(`still unfinished a minute later: ${JSON.stringify(items.slice(0, 3))}`)
    }
    await sleep(250)
  }
}
