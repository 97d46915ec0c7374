// This file of the package is half as large as its main entry. Loading it takes a tenth of the time of `belfry next`.
import cronstrue from 'cronstrue/dist/cronstrue.min.js'
import { plainExpression } from './cron-parse.js'

/** Human text for a cron expression, with its zone: "At 09:00, Monday through Friday, Europe/Berlin time". */
export function describeCron(expression: string, zone: string): string {
  const plain = plainExpression(expression).toUpperCase()
  return `${inWords(plain) ?? `At the times of "${plain}"`}, ${zone === 'UTC' ? 'UTC' : `${zone} time`}`
}

/** A list with a modifier. cronstrue refuses `1,15W` and misreads `MON#2,FRI`. */
const LIST_WITH_MODIFIER = /(?:[LW#][^ \t]*,|,[^ \t]*(?:[#W]|\bL\b|\dL))/

function inWords(plain: string): string | undefined {
  // Names have three letters. An L, W or # outside of them is a modifier.
  if (LIST_WITH_MODIFIER.test(plain.replace(/[A-Z]{3}/g, '1'))) return undefined
  const both = plain.includes('+')
  try {
    // A list that begins with "*" matches the same as "*".
    const simple = plain
      .replace('+', '')
      .replaceAll('#L', 'L')
      .replace(/(?<![^ \t])\*,[^ \t]*/g, '*')
    const words = cronstrue.toString(simple, { use24HourTimeFormat: true })
    if (!both) return words
    return words.replace(/, and (?:on )?/, ', only when it is ')
  } catch {
    // cronstrue throws a string for forms that it does not know.
    return undefined
  }
}
