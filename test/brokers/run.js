// @ts-check
/**
 * `npm run test:brokers [-- --short] [--only kafka] [--client kafkajs] [--scenario "leader killed"]`: real clusters of three
 * brokers on loopback, with faults, checked from outside. Safety is asserted; times are reported, as JSON lines.
 */
import { parseArgs } from 'node:util'
import { kafkaKind } from './kafka/cluster.js'
import { Load } from './load.js'
import { natsKind } from './nats/cluster.js'
import { rabbitKind } from './rabbitmq/cluster.js'
import { redisClusterKind } from './redis/cluster.js'
import { redisSentinelKind } from './redis/sentinel.js'
import { SCENARIOS, SHORT_SCENARIOS } from './scenarios.js'
import { verify } from './verify.js'

/** @type {readonly import('./cluster.js').BrokerKind[]} */
const KINDS = [kafkaKind, natsKind, rabbitKind, redisClusterKind, redisSentinelKind]
const PER_SECOND = 200
const SETTLED_WITHIN_MS = 180_000

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

let failed = 0
// Light clusters are tried together where time is short.
const light = values.short ? kinds.filter(({ isLight }) => isLight === true) : []
const groups = [...kinds.filter((kind) => !light.includes(kind)).map((kind) => [kind]), light]
for (const group of groups) for (const failures of await Promise.all(group.map(tryKind))) failed += failures
if (failed > 0) {
  console.error(`${failed} of the broker tests failed`)
  process.exit(1)
}
console.log('nothing lost, no id with two contents, order kept')

/** @param {import('./cluster.js').BrokerKind} kind */
async function tryKind(kind) {
  const clients = kind.clients.filter((client) => values.client === undefined || client === values.client)
  if (clients.length === 0) refuse(`--client ${values.client}: ${kind.name} has ${kind.clients.join(', ')}`)
  await kind.prepare(clients)
  const cluster = await kind.open()
  let failures = 0
  try {
    for (const scenario of scenarios.filter(({ only }) => only === undefined || only === kind.name)) {
      // At a high rate the clients take turns: together they would measure the machine.
      const turns = scenario.perSecond === undefined ? [clients] : clients.map((client) => [client])
      for (const turn of turns) failures += await tryScenario(kind, cluster, scenario, turn)
    }
  } finally {
    await cluster.stop()
  }
  return failures
}

/**
 * @param {import('./cluster.js').BrokerKind} kind
 * @param {import('./cluster.js').Cluster} cluster
 * @param {import('./scenarios.js').Scenario} scenario
 * @param {readonly string[]} clients each with a load and a destination of its own, through the same fault
 */
async function tryScenario(kind, cluster, scenario, clients) {
  const perSecond = Number(values.rate ?? scenario.perSecond ?? PER_SECOND)
  const { seconds, ordered = false } = scenario
  const say = (/** @type {string} */ line) => console.error(`${new Date().toISOString()} ${kind.name}: ${line}`)
  say(`${scenario.name}: ${clients.join(', ')} at ${perSecond} events/s`)
  /** @type {{ client: string, destination: string, load: Load }[]} */
  const parts = []
  let failures = 0
  try {
    for (const client of clients) {
      const destination = await cluster.makeDestination(`${client}-${Date.now()}`)
      const sink = cluster.sink(client, destination)
      parts.push({ client, destination, load: new Load({ name: client, sink, perSecond, seconds, ordered }) })
    }
    const loads = parts.map(({ load }) => load)
    await Promise.all(loads.map((load) => load.start()))
    await Promise.all(loads.map((load) => load.underWay()))
    await scenario.fault({ cluster, loads, destination: parts[0]?.destination ?? '', say })
    await Promise.all(loads.map((load) => load.settled(SETTLED_WITHIN_MS)))
    for (const { client, destination, load } of parts) {
      const arrived = await cluster.read(destination)
      const { violations, counts } = verify(load.expected(), arrived, { isOrdered: ordered, prefix: 'order/' })
      const dead = (await load.deadLetters()).length
      const isFine = violations.length === 0 && dead === 0
      console.log(
        JSON.stringify({
          ...{ broker: kind.name, client, scenario: scenario.name, perSecond, ...load.acknowledged, ...counts },
          ...{ outages: load.outages, deadLetters: dead },
        }),
      )
      for (const violation of violations) console.error(`VIOLATION ${client}, ${scenario.name}: ${violation}`)
      if (!isFine) {
        failures += 1
        console.error(load.said)
      }
    }
  } finally {
    await Promise.all(parts.map(({ load }) => load.stop()))
  }
  return failures
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
