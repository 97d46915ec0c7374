// @ts-check
/**
 * Measures how fast the next tick of a cron expression is found, and the time and memory that parsing takes. The
 * references are common cron libraries; the targets are relative to croner.
 */
import { PACE, race } from './harness/measure.js'
import { report, reportRace, reportSettings, tenths } from './harness/report.js'
import { UsageError } from './harness/usage-error.js'
import { belfry, belfryCached, croner, cronParser } from './next/calculators.js'
import { agreement, jumping, parsing, parsingAndNext, STEPS, sink, walking } from './next/contenders.js'
import { distinctExpressions, EXPRESSIONS, MAX_DISTINCT, ZONES } from './next/expressions.js'
import { heapPerExpression } from './next/heap.js'

/** @typedef {import('./next/contenders.js').Calculator} Calculator */

const BENCH = 'next'
const CALCULATORS = /** @type {Calculator[]} */ ([belfry, croner, cronParser])
const HEAP_ROUNDS = 3
const HEAP_TARGET_BYTES = 1_024

/** @type {import('./run.js').Bench} */
export default async function next({ store, n = 20_000 }) {
  if (store !== undefined) throw new UsageError('bench next is pure calculation: it takes no --store')
  if (n > MAX_DISTINCT) throw new UsageError(`--n ${n} is too many distinct expressions: at most ${MAX_DISTINCT}`)
  // Without a zone the other libraries use the process's, and Belfry uses UTC: with TZ=UTC all three calculate the
  // same.
  Object.assign(process.env, { TZ: 'UTC' })
  reportSettings(BENCH, { ...PACE, expressions: EXPRESSIONS, zones: ZONES, steps: STEPS, distinct: n })

  await compareNext('with a zone', ZONES, 50)
  await compareNext('without a zone', [undefined], 10)
  const expressions = distinctExpressions(n)
  await compare('parse', {}, (calculator) => parsing(calculator, expressions))
  await compare('parse + next with a zone', { target: 20 }, (calculator) => parsingAndNext(calculator, expressions))
  reportHeap(n)
  if (Number.isNaN(sink.sum)) throw new Error('a calculator found no tick where there is one')
}

/**
 * @param {string} label
 * @param {readonly (string | undefined)[]} zones
 * @param {number} target
 */
async function compareNext(label, zones, target) {
  const details = { target, agreement: agreement(CALCULATORS, zones) }
  await compare(`next ${label}, walking`, details, (calculator) => walking(calculator, zones))
  await compare(`next ${label}, random`, details, (calculator) => jumping(calculator, zones))
}

/**
 * @param {string} name
 * @param {Readonly<Record<string, unknown>>} details
 * @param {(calculator: Calculator) => import('./harness/measure.js').Contender} contend
 */
async function compare(name, details, contend) {
  reportRace({ bench: BENCH, case: name }, await race(CALCULATORS.map(contend)), details)
}

/** @param {number} n */
function reportHeap(n) {
  const few = Math.min(n, 1_000)
  const bytes = heapPerExpression({ belfry: n, belfryCached: n, croner: few, cronParser: few }, HEAP_ROUNDS)
  for (const [ours, { name }] of Object.entries({ belfry, belfryCached })) {
    for (const [reference, peer] of Object.entries({ croner, cronParser })) {
      const bytesEach = bytes.get(ours) ?? Number.NaN
      const referenceBytesEach = bytes.get(reference) ?? Number.NaN
      report({
        bench: BENCH,
        case: `heap, ${name}`,
        bytesEach,
        reference: peer.name,
        referenceBytesEach,
        ratio: tenths(referenceBytesEach / bytesEach),
        targetBytes: HEAP_TARGET_BYTES,
      })
    }
  }
}
