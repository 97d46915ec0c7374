// @ts-check
/** Faults of a cluster, and of Belfry, while a load is running. Each scenario must lose nothing. */
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * @typedef {object} Stage
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
 * @property {boolean} [everyWayIn] once per variant of the cluster
 * @property {number} [ways] only the last so many variants
 * @property {boolean} [refusedWayIn] with wrong credentials: no event arrives or fails permanently, and the log names the reason
 * @property {(stage: Stage) => Promise<void>} fault
 */

/** The prefix of schedules that the broker refuses, in addition to the load's. */
export const REFUSED = 'refused/'

/** @type {readonly Scenario[]} */
export const SCENARIOS = [
  { name: 'nothing happens', seconds: 10, fault: async () => {} },
  { name: 'missing topic and a message that is too large', seconds: 20, asksForRefusals: true, fault: refusals },
  { name: 'TLS, passwords and certificates', seconds: 5, perSecond: 50, everyWayIn: true, fault: async () => {} },
  { name: 'wrong credentials', seconds: 3, perSecond: 5, refusedWayIn: true, fault: async () => {} },
  { name: 'rolling restart', seconds: 45, fault: rollingRestart },
  { name: 'leader killed', seconds: 30, fault: leaderKilled },
  { name: 'leader frozen for 20 s', seconds: 45, fault: (stage) => leaderFrozen(stage, 20_000) },
  {
    name: 'leader frozen for 20 s, ordered',
    seconds: 45,
    ordered: true,
    fault: (stage) => leaderFrozen(stage, 20_000),
  },
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
    everyWayIn: true,
    ways: 2,
    fault: async () => {},
  },
  { name: 'wrong credentials', seconds: 2, perSecond: 5, refusedWayIn: true, fault: async () => {} },
]

/** @param {Stage} stage */
async function refusals({ cluster, loads, say }) {
  for (const load of loads) {
    for (const { name, ...options } of (await cluster.refusals?.(load.client)) ?? []) {
      say(`${load.name}: ${name}`)
      await load.putRefused(`${REFUSED}${name}`, options)
    }
  }
}

/** @param {Stage} stage */
async function rollingRestart({ cluster, say }) {
  for (const node of cluster.nodes) {
    say(`restarts ${node}`)
    await cluster.terminate(node)
    await cluster.start(node)
    await cluster.healthy()
  }
}

/** @param {Stage} stage */
async function leaderKilled({ cluster, destination, say }) {
  const leader = await cluster.leaderOf(destination)
  say(`kills ${leader}`)
  await cluster.kill(leader)
  await sleep(10_000)
  await cluster.start(leader)
  await cluster.healthy()
}

/** @param {Stage} stage @param {number} forMs */
async function leaderFrozen({ cluster, destination, say }, forMs) {
  const leader = await cluster.leaderOf(destination)
  say(`freezes ${leader}`)
  await cluster.freeze(leader)
  await sleep(forMs)
  await cluster.thaw(leader)
  await cluster.healthy()
}

/** @param {Stage} stage */
async function twoKilled({ cluster, say }) {
  const two = cluster.nodes.slice(0, 2)
  say(`kills ${two.join(' and ')}`)
  await Promise.all(two.map((node) => cluster.kill(node)))
  await sleep(15_000)
  await Promise.all(two.map((node) => cluster.start(node)))
  await cluster.healthy()
}

/** @param {Stage} stage */
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

/** @param {Stage} stage */
async function badMinute(stage) {
  await refusals(stage)
  await leaderFrozen(stage, 12_000)
  for (const load of stage.loads) {
    await load.killProcess()
    load.startProcess()
  }
  const leader = await stage.cluster.leaderOf(stage.destination)
  stage.say(`kills ${leader}`)
  await stage.cluster.kill(leader)
  await stage.cluster.start(leader)
  await stage.cluster.healthy()
  await rollingRestart(stage)
}
