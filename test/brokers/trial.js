// @ts-check
/**
 * One scenario on one cluster: starts loads, injects the fault, and compares the arrived events with the expected ones.
 */
import { Load } from './load.js'
import { REFUSED } from './scenarios.js'
import { verify } from './verify.js'

const PER_SECOND = 200
const SETTLED_WITHIN_MS = 180_000
/** A frozen node may delay events of the other nodes by this much. It is frozen for longer. */
const OTHERS_WITHIN_MS = 7_000

/**
 * @typedef {object} Trial
 * @property {string} broker
 * @property {import('./cluster.js').Cluster} cluster
 * @property {import('./scenarios.js').Scenario} scenario
 * @property {readonly string[]} clients each with its own load and destination, through the same fault
 * @property {number} [perSecond]
 *
 * @typedef {object} Part
 * @property {string} name
 * @property {string} destination
 * @property {Load} load
 */

/** @param {Trial} trial @returns {Promise<readonly string[]>} the problems */
export async function runTrial(trial) {
  const { broker, cluster, scenario, clients } = trial
  const say = (/** @type {string} */ line) => console.error(`${new Date().toISOString()} ${broker}: ${line}`)
  say(`${scenario.name}: ${clients.join(', ')}`)
  /** @type {Part[]} */
  const parts = []
  try {
    await prepare(trial, parts)
    const loads = parts.map(({ load }) => load)
    await Promise.all(loads.map((load) => load.start()))
    await Promise.all(loads.map((load) => load.underWay()))
    if (scenario.withRefusedVariant) return await allProblems(parts, (part) => credentialProblems(cluster, part))
    await scenario.fault({ cluster, loads, destination: parts[0]?.destination ?? '', say })
    await Promise.all(loads.map((load) => load.settled(SETTLED_WITHIN_MS)))
    return await allProblems(parts, (part) => problems(trial, part))
  } finally {
    await Promise.all(parts.map(({ load }) => load.stop()))
  }
}

/** @param {Trial} trial @param {Part[]} parts */
async function prepare({ cluster, scenario, clients, perSecond }, parts) {
  const {
    seconds,
    ordered = false,
    everyVariant = false,
    variantCount = Number.POSITIVE_INFINITY,
    withRefusedVariant = false,
  } = scenario
  /** @type {readonly (string | undefined)[]} */
  const variants = everyVariant
    ? (cluster.variants ?? []).slice(-variantCount)
    : [withRefusedVariant ? cluster.refusedVariant : undefined]
  for (const client of clients) {
    for (const variant of variants) {
      const name = variant === undefined ? client : `${client}-${variant}`
      const destination = await makeDestination(cluster, scenario, `${name}-${Date.now()}`)
      const sink = cluster.sink(client, destination, variant)
      const rate = perSecond ?? scenario.perSecond ?? PER_SECOND
      parts.push({ name, destination, load: new Load({ name, client, sink, perSecond: rate, seconds, ordered }) })
    }
  }
}

/** @param {import('./cluster.js').Cluster} cluster @param {import('./scenarios.js').Scenario} scenario @param {string} name */
function makeDestination(cluster, { firstNodeFreezes }, name) {
  if (firstNodeFreezes && cluster.makeUnreplicated !== undefined) return cluster.makeUnreplicated(name)
  return cluster.makeDestination(name)
}

/** @param {readonly Part[]} parts @param {(part: Part) => Promise<readonly string[]>} find */
async function allProblems(parts, find) {
  const all = []
  for (const part of parts) {
    const found = await find(part)
    for (const problem of found) console.error(`VIOLATION ${part.name}: ${problem}`)
    if (found.length > 0) console.error(part.load.said)
    all.push(...found)
  }
  return all
}

/** @param {Trial} trial @param {Part} part */
async function problems({ broker, cluster, scenario }, { name, destination, load }) {
  const arrived = await cluster.read(destination)
  const [first = ''] = cluster.nodes
  const frozen = scenario.firstNodeFreezes ? await cluster.placesOf?.(first, destination) : undefined
  const about = { isOrdered: load.isOrdered, prefix: 'order/', ...(frozen === undefined ? {} : { frozen }) }
  const { violations, counts } = verify(load.expected(), arrived, about)
  const letters = await load.deadLetters()
  const refused = letters.filter(({ schedule = '' }) => schedule.startsWith(REFUSED))
  const dead = letters.length - refused.length
  const figures = { ...load.acknowledged, ...counts, outages: load.outages, deadLetters: dead, refused: refused.length }
  console.log(JSON.stringify({ broker, client: name, scenario: scenario.name, ...figures }))
  const found = [...violations]
  const { othersMaxMs = 0 } = counts
  if (othersMaxMs > OTHERS_WITHIN_MS) found.push(`events of other nodes are up to ${othersMaxMs} ms late`)
  if (dead > 0) found.push(`${dead} events failed for good`)
  for (const schedule of load.refusals) {
    if (!refused.some((letter) => letter.schedule === schedule)) found.push(`nothing of "${schedule}" failed for good`)
  }
  return found
}

/**
 * With wrong credentials no event may arrive or fail permanently, and the log must name the reason.
 * @param {import('./cluster.js').Cluster} cluster @param {Part} part
 */
async function credentialProblems(cluster, { destination, load }) {
  const found = []
  const saidWhy = await load.says(/credentials|authenticat|password|not authorized/i)
  if (!saidWhy) found.push('the log does not say that the credentials are refused')
  if ((await cluster.read(destination)).length > 0) found.push('events arrived with wrong credentials')
  if ((await load.deadLetters()).length > 0) found.push('events failed for good because of wrong credentials')
  return found
}
