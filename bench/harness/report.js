// @ts-check
/** Prints JSON lines on standard output: the settings first, then one line per case and reference. */
import { cpus } from 'node:os'

/** @param {Readonly<Record<string, unknown>>} line */
export function report(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/**
 * @param {string} bench
 * @param {Readonly<Record<string, unknown>>} settings
 */
export function reportSettings(bench, settings) {
  report({ bench, settings: { node: process.version, cpus: cpus().length, ...settings } })
}

/**
 * Prints one line for each reference in a race.
 * @param {{ bench: string, case: string }} head
 * @param {Map<string, number>} rates Ours first.
 * @param {Readonly<Record<string, unknown>>} [details]
 */
export function reportRace(head, rates, details = {}) {
  const [ours, ...references] = rates
  if (ours === undefined) throw new Error('nothing was measured')
  const [, perSecond] = ours
  for (const [reference, referencePerSecond] of references) {
    report({
      ...head,
      perSecond: Math.round(perSecond),
      reference,
      referencePerSecond: Math.round(referencePerSecond),
      ratio: tenths(perSecond / referencePerSecond),
      ...details,
    })
  }
}

/** @param {number} value */
export function tenths(value) {
  return Math.round(value * 10) / 10
}

/** @param {number} value */
export function hundredths(value) {
  return Math.round(value * 100) / 100
}
