// @ts-check
/**
 * Chaos on real processes: several instances share a store and many schedules that tick every second, while processes
 * are killed, stopped past their lease and started again, connections break and the store itself crashes, by a plan that
 * a seed repeats. Then all is let come to rest, and the log that the handlers wrote is compared with what the store says.
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

/** How soon everybody must take part again after the store was down. */
const RECOVERY_MS = 30_000
/** How long a process may need to find out that its connections are half-open, and to make others. */
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

/** What happened, besides what the handlers wrote down. */
class History {
  /** When the store was down, until everybody was back. @type {Outage[]} */
  outages = []
  /** How often it is down at this moment, and since when it is not any more. */
  down = 0
  backAt = 0
  /** How long it took until everybody was back, each time. @type {number[]} */
  recoveries = []
  /** Until when the process in a place cannot be expected to be heard of. @type {Map<number, number>} */
  silentUntil = new Map()
  /** What broke a bound of time. @type {string[]} */
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
 * Carries the plan out, each fault at its time. Those that last go on beside the others.
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
 * One more, with nothing else going on and in the middle of something: how soon others go on can always be told from it.
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
  // Whoever comes meanwhile comes when it can: what counts is that nobody who was there has to be started again.
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
 * Every process that is at work proves that it lives, without having been started again. Answers how long that took, since
 * the store was last down.
 * @param {{ expected: readonly number[] } & Pick<Parameters<typeof disturb>[0], 'operator' | 'store' | 'crew' | 'history'>} options
 */
async function untilAllTakePart({ operator, store, crew, history, expected }) {
  const from = monotonicMs()
  /** By the store's clock, as soon as it tells. @type {number | undefined} */
  let since
  for (;;) {
    since ??= await store.now().catch(() => undefined)
    const instances = await operator.instances().catch(() => [])
    const beating = new Set(instances.filter(({ beatAt }) => beatAt >= (since ?? beatAt + 1)).map(({ pid }) => pid))
    // Whoever was killed or stopped meanwhile cannot be waited for.
    const atWork = new Set(crew.atWork(0))
    const isSilent = (/** @type {number} */ pid) => monotonicMs() < (history.silentUntil.get(crew.placeOf(pid)) ?? 0)
    const missing = expected.filter((pid) => atWork.has(pid) && !beating.has(pid) && !isSilent(pid))
    // Nobody can come back while the store is down again.
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
 * Whoever watches may still be looking for the store, like everybody else.
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

/**
 * Nothing may be left unfinished.
 * @param {import('../../dist/index.js').Belfry} operator
 */
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
