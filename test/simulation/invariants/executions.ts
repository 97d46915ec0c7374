/**
 * Checks executions as handlers saw them. Of two handlers with the same key that obey their signals, in processes that
 * are not paused, only one works at a time: a signal fires before the store gives the key to another run.
 */
import type { Chronicle, EntryOf } from '../chronicle.js'

const ONE_ID = 'an event id belongs to one run'
const ALONE = 'handlers of a key that obey their signal do not overlap'

interface Execution {
  readonly began: EntryOf<'began'>
  readonly returned: EntryOf<'returned'>
}

export function checkExecutions(chronicle: Chronicle): void {
  checkIds(chronicle)
  checkAlone(chronicle)
}

function checkIds(chronicle: Chronicle): void {
  const runs = new Map<string, string>()
  for (const { event, run } of chronicle.of('began')) {
    const known = runs.get(event) ?? run
    runs.set(event, known)
    if (known !== run) chronicle.violated(ONE_ID, `${event} is the id of ${known} and of ${run}`, known, run)
  }
}

function checkAlone(chronicle: Chronicle): void {
  const held = heldSlots(chronicle)
  const last = new Map<string, Execution>()
  for (const execution of executions(chronicle)) {
    const { began } = execution
    const { key } = began
    if (key === undefined || key.limit > 1 || !began.obeys || held.has(began.slot)) continue
    const before = last.get(key.name)
    if (before !== undefined && before.returned.at > began.at) {
      const text = `${key.name}: ${began.run} (${began.slot}) began while ${before.began.run} (${before.began.slot}) was at work`
      chronicle.violated(ALONE, text, began.run, before.began.run, began.slot, before.began.slot)
    }
    if (before === undefined || before.returned.at < execution.returned.at) last.set(key.name, execution)
  }
}

/** Completed executions, in order of their start. */
function executions(chronicle: Chronicle): Execution[] {
  const open = new Map<string, EntryOf<'began'>>()
  const ended: Execution[] = []
  for (const entry of chronicle.of('began', 'returned')) {
    const attempt = `${entry.run}@${entry.token}`
    if (entry.kind === 'began') open.set(attempt, entry)
    else {
      const began = open.get(attempt)
      if (began !== undefined) ended.push({ began, returned: entry })
    }
  }
  return ended.sort((one, other) => one.began.order - other.began.order)
}

function heldSlots(chronicle: Chronicle): Set<string> {
  const held = chronicle.of('note').flatMap(({ text }) => /^(\S+) is held$/.exec(text)?.[1] ?? [])
  return new Set(held)
}
