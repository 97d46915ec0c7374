// @ts-check
/** `node --expose-gc heap-child.js <calculator> <count>` prints the bytes that a parsed expression holds after its first tick. */
import * as calculators from './calculators.js'
import { distinctExpressions, moments, ZONES } from './expressions.js'

const WARMUP = 200

const [, , which = '', count = ''] = process.argv
/** @type {Record<string, unknown>} */
const known = { ...calculators }
const calculator = /** @type {import('./calculators.js').Calculator<unknown> | undefined} */ (known[which])
if (calculator === undefined) throw new Error(`no calculator is called ${which}`)

const expressions = distinctExpressions(Number(count) + WARMUP)
const instants = moments(1)
/** @type {unknown[]} */
const held = new Array(expressions.length).fill(undefined)

/**
 * @param {number} from
 * @param {number} to
 */
function hold(from, to) {
  for (let at = from; at < to; at += 1) {
    const parsed = calculator?.parse(/** @type {string} */ (expressions[at]), ZONES[at % ZONES.length])
    calculator?.nextOfEach(parsed, instants)
    held[at] = parsed
  }
}

function bytesInUse() {
  for (let pass = 0; pass < 3; pass += 1) globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

hold(0, WARMUP)
const before = bytesInUse()
hold(WARMUP, expressions.length)
const after = bytesInUse()
if (held.includes(undefined)) throw new Error('an expression was not held')
console.log((after - before) / Number(count))
