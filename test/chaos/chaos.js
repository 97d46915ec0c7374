// @ts-check
/**
 * Chaos test on real processes. Several instances share a store and many schedules that tick every second. Meanwhile
 * the test kills, stops and restarts processes, breaks connections and crashes the store, by a plan that a seed
 * reproduces. Afterwards it lets all runs finish, and compares the handlers' log with the store's contents.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../../dist/index.js'
import { AcknowledgedEnqueues } from './acknowledged.js'
import { monotonicMs } from './monotonic.js'
import { describeFault, planFaults } from './plan.js'
import { SOLO, scheduleInput } from './schedules.js'
import { openStoreSetup } from './store-setups.js'
import { makeEffectsTable, openStore, readEffects } from './stores.js'
import { tolerate } from './tolerate.js'
import { verify } from './verify.js'
import { WorkerProcesses } from './worker-processes.js'

/** How soon all processes must beat again after a store outage. */
const RECOVERY_MS = 30_000
/** How long a process may take to detect half-open connections and replace them. */
const SILENT_MS = 15_000

/**
 * @typedef {object} WorkerSettings
 * @property {import('./stores.js').StoreKind} store
 * @property {string} log
 * @property {number} lease
 * @property {number} slot
 *
 * @typedef {object} ChaosOptions
 * @property {import('./store-setups.js').StoreSetupKind} store
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
  /** Store outages; each lasts until all processes beat again. @type {Outage[]} */
  outages = []
  /** How many outages are current. */
  down = 0
  /** When the last outage ended. */
  backAt = 0
  /** How long it took after each outage until all processes beat again. @type {number[]} */
  recoveries = []
  /** By slot: until when a half-open connection may keep the process from sending beats. @type {Map<number, number>} */
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
  const setup = await openStoreSetup(kind, processes, seed)
  const { leaseMs } = setup
  const plan = planFaults({ seed, seconds, processes, leaseMs, kinds: setup.kinds })
  for (const fault of plan) say(`planned: ${describeFault(fault)}`)
  const store = await openStore(setup.store)
  const operator = createBelfry({ store, roles: [], logger: { debug() {}, info() {}, warn() {}, error() {} } })
  operator.job('solo', { ...SOLO, run: () => {} })
  const enqueues = new AcknowledgedEnqueues(operator.job('enqueued', { run: () => {} }))
  await operator.start()
  await makeEffectsTable(setup.store)
  const history = new History()
  const settingsOf = (/** @type {number} */ slot) => ({ store: setup.storeOf(slot), log, lease: leaseMs, slot })
  const workers = new WorkerProcesses(processes, settingsOf, setup.environmentOf)
  try {
    const ids = Array.from({ length: schedules }, (_, at) => `s/${at}`)
    await operator.schedules.putMany(ids.map((id, at) => /** @type {const} */ ([id, scheduleInput(at)])))
    enqueues.begin()
    await injectFaults({ plan, seconds, workers, setup, store, operator, history, say })
    await enqueues.end()
    await killBusiestWorker(operator, workers, leaseMs, say)
    say('coming to rest')
    for (const id of ids) await retried(() => operator.schedules.pause(id))
    await untilAllRunsEnded(operator)
    await untilAllBeat({ operator, store, workers, history, expected: workers.running(0) })
    const lines = readLines(log)
    const effects = store.supports.transactions ? await readEffects(setup.store) : undefined
    const skews = Array.from({ length: processes }, (_, at) => setup.skewOf(at))
    const { clockErrorMs, frozenHoldsStore, losses = 'nothing' } = setup
    const findings = await verify({
      operator,
      ids,
      lines,
      effects,
      workers,
      history,
      skews,
      leaseMs,
      clockErrorMs,
      frozenHoldsStore,
    })
    const lostEnqueues = await enqueues.compare(operator, findings.violations)
    if (lostEnqueues > 0) findings.violations.push(`${lostEnqueues} acknowledged enqueues are lost`)
    Object.assign(findings.counts, { enqueues: enqueues.count, lostEnqueues })
    return tolerate(findings, losses)
  } finally {
    await enqueues.end()
    await workers.killAll()
    await operator.stop()
    await setup.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Injects each planned fault at its time. Longer faults overlap with later ones.
 * @param {object} options
 * @param {import('./plan.js').Fault[]} options.plan
 * @param {number} options.seconds
 * @param {WorkerProcesses} options.workers
 * @param {import('./store-setups.js').StoreSetup} options.setup
 * @param {import('../../dist/index.js').Store} options.store
 * @param {import('../../dist/index.js').Belfry} options.operator
 * @param {History} options.history
 * @param {(line: string) => void} options.say
 */
async function injectFaults({ plan, seconds, workers, setup, store, operator, history, say }) {
  const began = monotonicMs()
  /** @type {Promise<void>[]} */
  const pending = []
  for (const fault of plan) {
    await sleep(Math.max(began + fault.atMs - monotonicMs(), 0))
    say(describeFault(fault))
    if (fault.kind === 'kill') workers.kill(fault.process)
    else if (fault.kind === 'term') workers.terminate(fault.process)
    else if (fault.kind === 'stop') pending.push(workers.stop(fault.process, sleep(fault.forMs)))
    else if (fault.kind === 'block') pending.push(workers.block(fault.process, fault.forMs, sleep(fault.forMs)))
    else pending.push(injectStoreFault(fault, { workers, setup, store, operator, history, say }))
  }
  await sleep(Math.max(began + seconds * 1_000 - monotonicMs(), 0))
  await Promise.all(pending)
}

/**
 * Kills one more process while it has runs and no other fault is active, so that at least one takeover can always be
 * measured.
 * @param {import('../../dist/index.js').Belfry} operator
 * @param {WorkerProcesses} workers
 * @param {number} leaseMs
 * @param {(line: string) => void} say
 */
async function killBusiestWorker(operator, workers, leaseMs, say) {
  await sleep(leaseMs * 1.5)
  for (const until = monotonicMs() + 20_000; monotonicMs() < until; await sleep(100)) {
    const pids = new Map((await retried(() => operator.instances())).map(({ id, pid }) => [id, pid]))
    const { items } = await retried(() => operator.runs.list({ state: ['running'], job: 'slow', limit: 100 }))
    const running = items.flatMap(({ instance }) => pids.get(instance ?? '') ?? [])
    const countOf = (/** @type {number} */ pid) => running.filter((one) => one === pid).length
    const busiest = workers.running(leaseMs).sort((one, other) => countOf(other) - countOf(one))[0]
    if (busiest === undefined || countOf(busiest) === 0) continue
    say(`kill -9 of the busiest, ${busiest}`)
    workers.kill(workers.slotOf(busiest))
    return
  }
}

/**
 * @param {import('./plan.js').Fault} fault
 * @param {Omit<Parameters<typeof injectFaults>[0], 'plan' | 'seconds'>} options
 */
async function injectStoreFault(fault, { workers, setup, store, operator, history, say }) {
  if (!setup.outages.includes(fault.kind)) {
    if (fault.kind === 'mute' || fault.kind === 'deaf') {
      history.silentUntil.set(fault.process, monotonicMs() + fault.forMs + SILENT_MS)
    }
    return setup.inject(fault, (ms) => sleep(ms))
  }
  const outage = { from: monotonicMs(), to: Number.POSITIVE_INFINITY }
  // Only processes that were up before the outage must recover in time. Those that start during it take longer.
  const expected = workers.up()
  history.outages.push(outage)
  history.down += 1
  await setup.inject(fault, (ms) => sleep(ms))
  history.down -= 1
  history.backAt = monotonicMs()
  const tookMs = await untilAllBeat({ operator, store, workers, history, expected })
  outage.to = monotonicMs()
  if (tookMs !== undefined) say(`all processes beat again, ${tookMs} ms after the store was back`)
}

/**
 * Waits until every expected process that still runs beats again, and returns how long that took since the end of the
 * last outage. Returns undefined when it took too long.
 * @param {{ expected: readonly number[] } & Pick<Parameters<typeof injectFaults>[0], 'operator' | 'store' | 'workers' | 'history'>} options
 */
async function untilAllBeat({ operator, store, workers, history, expected }) {
  const from = monotonicMs()
  /** The time on the store's clock, once the store answers. @type {number | undefined} */
  let since
  for (;;) {
    since ??= await store.now().catch(() => undefined)
    const instances = await operator.instances().catch(() => [])
    const beating = new Set(instances.filter(({ beatAt }) => beatAt >= (since ?? beatAt + 1)).map(({ pid }) => pid))
    // The others were killed or stopped meanwhile.
    const running = new Set(workers.running(0))
    const isSilent = (/** @type {number} */ pid) => monotonicMs() < (history.silentUntil.get(workers.slotOf(pid)) ?? 0)
    const missing = expected.filter((pid) => running.has(pid) && !beating.has(pid) && !isSilent(pid))
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
 * Retries a call of the operator, whose own connection to the store may still be broken.
 * @template Result
 * @param {() => Promise<Result>} work
 * @returns {Promise<Result>}
 */
async function retried(work) {
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
async function untilAllRunsEnded(operator) {
  const until = monotonicMs() + 60_000
  for (;;) {
    const { items } = await retried(() => operator.runs.list({ state: ['waiting', 'ready', 'running'], limit: 10 }))
    if (items.length === 0) return
    if (monotonicMs() > until) {
      throw new Error(`still unfinished a minute later: ${JSON.stringify(items.slice(0, 3))}`)
    }
    await sleep(250)
  }
}
