// @ts-check
/**
 * Checks, from outside, the events that a load sent through a fault: none is lost, none arrived that was not sent, an
 * id always has the same content, and with `ordered` the events of a key are in order.
 */

/**
 * @typedef {object} Verdict
 * @property {readonly string[]} violations
 * @property {Counts} counts
 *
 * @typedef {{ readonly body: string, readonly place: string, readonly tick: number, readonly storedAt: number | undefined }} Stored
 *
 * @typedef {object} Counts
 * @property {number} expected
 * @property {number} arrived ids, each counted once
 * @property {number} repeated messages beyond the first of each id
 * @property {number} [p50Ms] from the tick until the broker stored the first message with its id
 * @property {number} [p99Ms]
 * @property {number} [maxMs]
 * @property {number} [silentMs] the longest time in which the broker stored nothing
 * @property {number} [othersMaxMs] the longest delay of an event in places that are not on the frozen node
 */

const FIELDS = ['id', 'generated_at', 'schedule_id', 'payload']
const MOST_EXAMPLES = 3

/**
 * @param {ReadonlySet<string>} expected
 * @param {readonly import('./cluster.js').Arrived[]} arrived
 * @param {{ isOrdered: boolean, prefix: string, frozen?: readonly string[] }} load `prefix`: events of other schedules do
 * not belong to the load; `frozen`: the places on the frozen node
 * @returns {Verdict}
 */
export function verify(expected, arrived, { isOrdered, prefix, frozen = [] }) {
  /** @type {Map<string, Stored>} */
  const first = new Map()
  const violations = new Violations()
  /** @type {Map<string, number>} the newest tick of each key */
  const newest = new Map()
  let repeated = 0
  for (const { body, key, place, storedAt } of arrived) {
    const event = JSON.parse(body)
    if (!String(event.schedule_id).startsWith(prefix)) continue
    if (Object.keys(event).join() !== FIELDS.join()) violations.add('fields', body)
    const known = first.get(event.id)
    if (known !== undefined) {
      repeated += 1
      if (known.body !== body) violations.add('an id with two contents', `${known.body} and ${body}`)
      continue
    }
    if (!expected.has(event.id)) violations.add('not expected', event.id)
    const tick = Date.parse(event.generated_at)
    first.set(event.id, { body, place, tick, storedAt })
    if (event.id !== `${event.schedule_id}-${Math.floor(tick / 1_000)}`) violations.add('an id of another tick', body)
    if (isOrdered && tick < (newest.get(key) ?? 0)) violations.add('out of order', event.id)
    newest.set(key, Math.max(tick, newest.get(key) ?? 0))
  }
  for (const id of expected) if (!first.has(id)) violations.add('lost', id)
  const others = [...first.values()].filter(({ place }) => !frozen.includes(place))
  const { maxMs: othersMaxMs } = frozen.length === 0 ? {} : latenessOf(others)
  const counts = {
    ...{ expected: expected.size, arrived: first.size, repeated },
    ...latenessOf([...first.values()]),
    ...(othersMaxMs === undefined ? {} : { othersMaxMs }),
  }
  return { violations: violations.list(), counts }
}

/** Counts violations by kind and keeps a few examples of each, so that a loss of thousands is one line. */
class Violations {
  /** @type {Map<string, { count: number, examples: string[] }>} */
  #kinds = new Map()

  /** @param {string} kind @param {string} example */
  add(kind, example) {
    const known = this.#kinds.get(kind) ?? { count: 0, examples: [] }
    known.count += 1
    if (known.examples.length < MOST_EXAMPLES) known.examples.push(example)
    this.#kinds.set(kind, known)
  }

  list() {
    return [...this.#kinds].map(([kind, { count, examples }]) => `${kind}: ${count}, such as ${examples.join(', ')}`)
  }
}

/**
 * @param {readonly Stored[]} events
 * @returns {Partial<Counts>}
 */
function latenessOf(events) {
  const stored = events.flatMap(({ tick, storedAt }) => (storedAt === undefined ? [] : [{ tick, storedAt }]))
  if (stored.length === 0) return {}
  const late = stored.map(({ tick, storedAt }) => storedAt - tick)
  late.sort((one, other) => one - other)
  const times = stored.map(({ storedAt }) => storedAt).sort((one, other) => one - other)
  const gaps = times.slice(1).map((time, at) => time - (times[at] ?? time))
  const quantile = (/** @type {number} */ share) => late[Math.min(Math.floor(late.length * share), late.length - 1)]
  return {
    p50Ms: quantile(0.5) ?? 0,
    p99Ms: quantile(0.99) ?? 0,
    maxMs: late.at(-1) ?? 0,
    silentMs: gaps.reduce((most, gap) => Math.max(most, gap), 0),
  }
}
