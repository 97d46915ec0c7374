// @ts-check
/** Faults of a cluster, and of Belfry, while a load is running. Each scenario must lose nothing. */
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * @typedef {object} FaultContext
 * @property {import('./cluster.js').Cluster} cluster
 * @property {readonly import('./load.js').Load[]} loads
 * @property {string} destination one of the loads' destinations
 * @property {(line: string) => void} say
 *
 * @typedef {object} Scenario
 * @property {string} name
 * @property {number} seconds how long the load runs
 * @property {number} [perSecond]
 * @property {boolean} [ordered]
 * @property {string} [only] the only kind of broker to run it on
 * @property {boolean} [isHeavy] clients run one after another
 * @property {boolean} [asksForRefusals] with events that the broker refuses
 * @property {boolean} [everyVariant] once per variant of the cluster
 * @property {number} [variantCount] only the last so many variants
 * @property {boolean} [withRefusedVariant] with wrong credentials: no event arrives or fails permanently, and the log names the reason
 * @property {boolean} [firstNodeFreezes] on a destination without replicas: events of partitions on the other nodes must not be late
 * @property {(context: FaultContext) => Promise<void>} fault
 */

/** The id prefix of the schedules that a scenario adds to the load and whose events the broker refuses. */
export const REFUSED = 'refused/'

/** @type {readonly Scenario[]} */
export const SCENARIOS = [
  { name: 'nothing happens', seconds: 10, fault: async () => {} },
  { name: 'missing topic and a message that is too large', seconds: 20, asksForRefusals: true, fault: refusals },
  { name: 'TLS, passwords and certificates', seconds: 5, perSecond: 50, everyVariant: true, fault: async () => {} },
  { name: 'wrong credentials', seconds: 3, perSecond: 5, withRefusedVariant: true, fault: async () => {} },
  { name: 'rolling restart', seconds: 45, fault: rollingRestart },
  { name: 'leader killed', seconds: 30, fault: leaderKilled },
  { name: 'leader frozen for 20 s', seconds: 45, fault: (context) => leaderFrozen(context, 20_000) },
  {
    name: 'leader frozen for 20 s, ordered',
    seconds: 45,
    ordered: true,
    fault: (context) => leaderFrozen(context, 20_000),
  },
  { name: 'one broker frozen for 8 s, no replicas', seconds: 25, firstNodeFreezes: true, fault: firstFrozen },
  { name: 'two of three killed', seconds: 45, fault: twoKilled },
  { name: 'Belfry killed six times', seconds: 40, fault: belfryKilled },
  {
    name: 'rolling restart at 5,000 events/s',
    seconds: 45,
    perSecond: 5_000,
    isHeavy: true,
    only: 'kafka',
    fault: rollingRestart,
  },
  {
    name: 'leader killed at 5,000 events/s',
    seconds: 30,
    perSecond: 5_000,
    isHeavy: true,
    only: 'kafka',
    fault: leaderKilled,
  },
]

/** A short form of about a minute: it finds broken code, but does not measure recovery times. */
/** @type {readonly Scenario[]} */
export const SHORT_SCENARIOS = [
  { name: 'a bad minute', seconds: 60, ordered: true, fault: badMinute },
  {
    name: 'TLS, passwords and certificates',
    seconds: 3,
    perSecond: 20,
    everyVariant: true,
    variantCount: 2,
    fault: async () => {},
  },
  { name: 'wrong credentials', seconds: 2, perSecond: 5, withRefusedVariant: true, fault: async () => {} },
]

/** @param {FaultContext} context */
async function refusals({ cluster, loads, say }) {
  for (const load of loads) {
    for (const { name, ...options } of (await cluster.refusals?.(load.client)) ?? []) {
      say(`${load.name}: ${name}`)
      await load.putRefused(`${REFUSED}${name}`, options)
    }
  }
}

/** @param {FaultContext} context */
async function rollingRestart({ cluster, say }) {
  for (const node of cluster.nodes) {
    say(`restarts ${node}`)
    await cluster.terminate(node)
    await cluster.start(node)
    await cluster.healthy()
  }
}

/** @param {FaultContext} context */
async function leaderKilled({ cluster, destination, say }) {
  const leader = await cluster.leaderOf(destination)
  say(`kills ${leader}`)
  await cluster.kill(leader)
  await sleep(10_000)
  await cluster.start(leader)
  await cluster.healthy()
}

/** @param {FaultContext} context @param {number} forMs */
async function leaderFrozen({ cluster, destination, say }, forMs) {
  const leader = await cluster.leaderOf(destination)
  say(`freezes ${leader}`)
  await cluster.freeze(leader)
  await sleep(forMs)
  await cluster.thaw(leader)
  await cluster.healthy()
}

/**
 * Freezes the first node of the list, and restarts Belfry meanwhile, so that it also connects while that node hangs. The
 * node is back before the cluster declares it dead: Kafka's partitions without a leader are another fault.
 * @param {FaultContext} context
 */
async function firstFrozen({ cluster, loads, say }) {
  const [first = ''] = cluster.nodes
  say(`freezes ${first}`)
  await cluster.freeze(first)
  await sleep(3_000)
  say('restarts Belfry')
  await Promise.all(loads.map((load) => load.restartProcess()))
  await sleep(5_000)
  await cluster.thaw(first)
  await cluster.healthy()
}

/** @param {FaultContext} context */
async function twoKilled({ cluster, say }) {
  const two = cluster.nodes.slice(0, 2)
  say(`kills ${two.join(' and ')}`)
  await Promise.all(two.map((node) => cluster.kill(node)))
  await sleep(15_000)
  await Promise.all(two.map((node) => cluster.start(node)))
  await cluster.healthy()
}

/** @param {FaultContext} context */
async function belfryKilled({ loads, say }) {
  for (let kill = 0; kill < 6; kill += 1) {
    await sleep(5_000)
    say('kills Belfry')
    for (const load of loads) {
      await load.killProcess()
      load.startProcess()
    }
  }
}

/** @param {FaultContext} context */
async function badMinute(context) {
  await refusals(context)
  await leaderFrozen(context, 12_000)
  for (const load of context.loads) {
    await load.killProcess()
    load.startProcess()
  }
  const leader = await context.cluster.leaderOf(context.destination)
  context.say(`kills ${leader}`)
  await context.cluster.kill(leader)
  await context.cluster.start(leader)
  await context.cluster.healthy()
  await rollingRestart(context)
}
