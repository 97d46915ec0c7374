// @ts-check
/**
 * How every bench measures: contenders alternate within each round, so that other load on the machine affects all of
 * them; each turn has a time limit; the median of the rounds counts.
 */

/**
 * @typedef {object} Contender
 * @property {string} name
 * @property {() => number | Promise<number>} batch Does a bounded amount of work and returns the number of operations.
 *
 * @typedef {object} Pace
 * @property {number} rounds At least three.
 * @property {number} turnMs
 * @property {number} warmupMs
 */

/** @type {Pace} */
export const PACE = { rounds: 5, turnMs: 300, warmupMs: 200 }

/**
 * Operations per second of each contender, by name.
 * @param {readonly Contender[]} contenders
 * @param {Pace} pace
 * @returns {Promise<Map<string, number>>}
 */
export async function race(contenders, { rounds, turnMs, warmupMs } = PACE) {
  if (rounds < 3) throw new Error(`${rounds} rounds are too few for a median: take at least 3`)
  for (const contender of contenders) await turn(contender, warmupMs)
  const rates = new Map(contenders.map(({ name }) => [name, /** @type {number[]} */ ([])]))
  for (let round = 0; round < rounds; round += 1) {
    const first = round % contenders.length
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      rates.get(contender.name)?.push(await turn(contender, turnMs))
    }
  }
  return new Map([...rates].map(([name, perSecond]) => [name, median(perSecond)]))
}

/**
 * @param {Contender} contender
 * @param {number} forMs
 */
async function turn({ batch }, forMs) {
  let operations = 0
  let elapsedMs = 0
  const startedAt = performance.now()
  do {
    const done = batch()
    operations += typeof done === 'number' ? done : await done
    elapsedMs = performance.now() - startedAt
  } while (elapsedMs < forMs)
  return (operations / elapsedMs) * 1_000
}

/**
 * @param {readonly number[]} values
 * @returns {number}
 */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/**
 * @param {readonly number[]} values
 * @param {number} part Between 0 and 1.
 * @returns {number}
 */
export function percentile(values, part) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(Math.ceil(sorted.length * part), sorted.length) - 1] ?? Number.NaN
}

const WATCH_MS = 5

/**
 * Measures how late timers fire: the maximum is how long something blocked the event loop.
 * @returns {() => number} Ends the measurement, and returns the maximum in milliseconds.
 */
export function watchEventLoop() {
  let longest = 0
  let expected = performance.now() + WATCH_MS
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - expected)
    expected = performance.now() + WATCH_MS
  }, WATCH_MS)
  return () => {
    clearInterval(timer)
    return longest
  }
}

/**
 * For work that is long enough to be a turn by itself: in each round every contender runs once, in a different order,
 * and returns its rate.
 * @template {string} Name
 * @param {number} rounds At least three.
 * @param {Readonly<Record<Name, () => Promise<number>>>} contenders
 * @returns {Promise<Record<Name, number[]>>}
 */
export async function takeTurns(rounds, contenders) {
  const names = /** @type {Name[]} */ (Object.keys(contenders))
  const rates = /** @type {Record<string, number[]>} */ (Object.fromEntries(names.map((name) => [name, []])))
  for (let round = 0; round < rounds; round += 1) {
    const first = round % names.length
    for (const name of [...names.slice(first), ...names.slice(0, first)]) rates[name]?.push(await contenders[name]())
  }
  return rates
}

/**
 * The median of the rounds' ratios, not the ratio of the medians: within a round, both contenders met the same other
 * load on the machine.
 * @param {readonly number[]} ours
 * @param {readonly number[]} theirs
 */
export function ratioOf(ours, theirs) {
  return median(ours.map((rate, round) => rate / (theirs[round] ?? Number.NaN)))
}

/**
 * @param {number} count
 * @param {() => Promise<unknown>} work
 * @returns {Promise<number>} Calls per second.
 */
export async function rateOf(count, work) {
  const startedAt = performance.now()
  await work()
  return (count / (performance.now() - startedAt)) * 1_000
}

/**
 * Keeps a number of calls in flight for a while.
 * @param {number} clients
 * @param {number} forMs
 * @param {(client: number) => Promise<unknown>} call
 * @returns {Promise<number>} Calls per second.
 */
export async function inFlight(clients, forMs, call) {
  const startedAt = performance.now()
  let done = 0
  const client = async (/** @type {number} */ at) => {
    for (; performance.now() - startedAt < forMs; done += 1) await call(at)
  }
  await Promise.all(Array.from({ length: clients }, (_, at) => client(at)))
  return (done / (performance.now() - startedAt)) * 1_000
}
