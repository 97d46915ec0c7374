// @ts-check
/** Heap per parsed expression, with each library in a separate process. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median } from '../harness/measure.js'

const CHILD = fileURLToPath(new URL('./heap-child.js', import.meta.url))

/**
 * Median bytes of each library, by name.
 * @param {Readonly<Record<string, number>>} counts How many expressions to hold, by the calculator's export.
 * @param {number} rounds
 * @returns {Map<string, number>}
 */
export function heapPerExpression(counts, rounds) {
  const bytes = new Map(Object.keys(counts).map((calculator) => [calculator, /** @type {number[]} */ ([])]))
  for (let round = 0; round < rounds; round += 1) {
    for (const [calculator, count] of Object.entries(counts)) {
      const args = ['--expose-gc', CHILD, calculator, String(count)]
      bytes.get(calculator)?.push(Number(execFileSync(process.execPath, args, { encoding: 'utf8' })))
    }
  }
  return new Map([...bytes].map(([calculator, each]) => [calculator, Math.round(median(each))]))
}
