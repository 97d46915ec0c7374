// Half as long as what the package's name stands for: reading it is a tenth of the time that `belfry next` takes.
import cronstrue from 'cronstrue/dist/cronstrue.min.js'
import { plainExpression } from './cron-parse.js'

/** Human text for a cron expression, with its zone: "At 09:00, Monday through Friday, Europe/Berlin time". */
export function describeCron(expression: string, zone: string): string {
  const plain = plainExpression(expression).toUpperCase()
  return `${inWords(plain) ?? `At the times of "${plain}"`}, ${zone === 'UTC' ? 'UTC' : `${zone} time`}`
}

/** A list that holds a modifier, such as `1,15W` or `MON#2,FRI`: cronstrue refuses the one and misreads the other. */
const LIST_WITH_MODIFIER = /(?:[LW#][^ \t]*,|,[^ \t]*(?:[#W]|\bL\b|\dL))/

function inWords(plain: string): string | undefined {
  // Names have three letters; what is left of L, W and # are modifiers.
  if (LIST_WITH_MODIFIER.test(plain.replace(/[A-Z]{3}/g, '1'))) return undefined
  const both = plain.includes('+')
  try {
    // A list that begins with "*" says no more than "*".
    const simple = plain
      .replace('+', '')
      .replaceAll('#L', 'L')
      .replace(/(?<![^ \t])\*,[^ \t]*/g, '*')
    const words = cronstrue.toString(simple, { use24HourTimeFormat: true })
    if (!both) return words
    return words.replace(/, and (?:on )?/, ', only when it is ')
  } catch {
    // cronstrue throws text, and knows fewer forms than the parser does.
    return undefined
  }
}
