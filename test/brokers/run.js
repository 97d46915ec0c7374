// @ts-check
/**
 * `npm run test:brokers [-- --short] [--only kafka] [--client kafkajs] [--scenario "leader killed"]`: real clusters of
 * three brokers on loopback, with faults, checked from outside. Safety is asserted; times are reported as JSON lines.
 */
import { parseArgs } from 'node:util'
import { kafkaKind } from './kafka/cluster.js'
import { natsKind } from './nats/cluster.js'
import { rabbitKind } from './rabbitmq/cluster.js'
import { redisClusterKind } from './redis/cluster.js'
import { redisSentinelKind } from './redis/sentinel.js'
import { SCENARIOS, SHORT_SCENARIOS } from './scenarios.js'
import { runTrial } from './trial.js'

/** @type {readonly import('./cluster.js').BrokerKind[]} */
const KINDS = [kafkaKind, natsKind, rabbitKind, redisClusterKind, redisSentinelKind]

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    only: { type: 'string' },
    client: { type: 'string' },
    scenario: { type: 'string', default: '' },
    rate: { type: 'string' },
  },
})
const kinds = KINDS.filter(({ name }) => values.only === undefined || name === values.only)
if (kinds.length === 0) refuse(`--only ${values.only}: there is ${KINDS.map(({ name }) => name).join(', ')}`)
const all = values.short ? SHORT_SCENARIOS : SCENARIOS
const scenarios = all.filter(({ name }) => name.includes(values.scenario))
if (scenarios.length === 0) refuse(`--scenario ${values.scenario}: there is ${all.map(({ name }) => name).join('; ')}`)
if (values.rate !== undefined && !/^[1-9]\d{0,4}$/.test(values.rate)) refuse(`--rate ${values.rate} is not a rate`)

/** @type {string[]} */
const failed = []
// In the short form, light clusters run concurrently.
const light = values.short ? kinds.filter(({ isLight }) => isLight === true) : []
const groups = [...kinds.filter((kind) => !light.includes(kind)).map((kind) => [kind]), light]
for (const group of groups) failed.push(...(await Promise.all(group.map(runScenarios))).flat())
if (failed.length > 0) {
  console.error(`failed: ${failed.join('; ')}`)
  process.exit(1)
}
console.log('nothing lost, no id with two contents, order kept')

/** @param {import('./cluster.js').BrokerKind} kind */
async function runScenarios(kind) {
  const clients = kind.clients.filter((client) => values.client === undefined || client === values.client)
  if (clients.length === 0) refuse(`--client ${values.client}: ${kind.name} has ${kind.clients.join(', ')}`)
  await kind.prepare(clients)
  let cluster = await opened(kind)
  /** @type {string[]} */
  const failures = []
  try {
    for (const scenario of scenarios) {
      if (!canRun(scenario, kind, cluster)) continue
      // At a high rate the clients run one after another; together they would measure the machine.
      const turns = scenario.isHeavy ? clients.map((client) => [client]) : [clients]
      for (const turn of turns) {
        const rate = values.rate === undefined ? {} : { perSecond: Number(values.rate) }
        const trial = () => runTrial({ broker: kind.name, cluster, scenario, clients: turn, ...rate })
        const hasPassed = await passes(trial, async () => {
          await cluster.stop()
          cluster = await opened(kind)
        })
        if (!hasPassed) failures.push(`${kind.name}, ${turn.join(', ')}: ${scenario.name}`)
      }
    }
  } finally {
    await cluster.stop()
  }
  return failures
}

/**
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {import('./cluster.js').BrokerKind} kind
 * @param {import('./cluster.js').Cluster} cluster
 */
function canRun({ only, everyVariant, withRefusedVariant, asksForRefusals, firstNodeFreezes }, kind, cluster) {
  if (only !== undefined && only !== kind.name) return false
  if (everyVariant && cluster.variants === undefined) return false
  if (withRefusedVariant && cluster.refusedVariant === undefined) return false
  if (firstNodeFreezes && cluster.makeUnreplicated === undefined) return false
  return !asksForRefusals || cluster.refusals !== undefined
}

/**
 * A trial that finds lost or reordered events fails at once. One that throws, for example because a stalled disk
 * delayed an election, is tried once more on a new cluster.
 * @param {() => Promise<readonly string[]>} trial
 * @param {() => Promise<void>} renewCluster
 */
async function passes(trial, renewCluster) {
  try {
    return (await trial()).length === 0
  } catch (error) {
    console.error(error)
  }
  try {
    await renewCluster()
    return (await trial()).length === 0
  } catch (error) {
    console.error(error)
    return false
  }
}

/** Starts a cluster, and tries once more if the start fails. @param {import('./cluster.js').BrokerKind} kind */
async function opened(kind) {
  try {
    return await kind.open()
  } catch (error) {
    console.error(error)
    return kind.open()
  }
}

/**
 * @param {string} problem
 * @returns {never}
 */
function refuse(problem) {
  console.error(
    `${problem}\nusage: npm run test:brokers [-- --short] [--only KIND] [--client NAME] [--scenario TEXT] [--rate N]`,
  )
  process.exit(2)
}
