/** After the drain every run has ended, and every created run is accounted for. */
import type { Chronicle } from '../chronicle.js'
import type { FinalState } from '../final-state.js'

const ENDS = 'every run ends'
const FREE = 'nothing holds a key when nothing runs'

export function checkEndings(chronicle: Chronicle, { unfinished, leases, runs }: FinalState): void {
  for (const { id, state, waitsFor, instance, key, schedule } of unfinished) {
    const text = `${id} is still ${state}${waitsFor === undefined ? '' : ` for ${waitsFor}`}, last at ${instance}`
    chronicle.violated(ENDS, text, id, key?.name ?? id, schedule ?? id)
  }
  for (const { name, holder } of leases) chronicle.violated(FREE, `${name} is held by ${holder}`, name)
  checkEnqueued(chronicle, new Set(runs.map(({ id }) => id)))
}

/** A run that the history does not contain must have ended in a way that its `keep` does not record. */
function checkEnqueued(chronicle: Chronicle, known: ReadonlySet<string>): void {
  const settled = new Map(chronicle.of('settled').map(({ run, outcome }) => [run, outcome]))
  const claimed = new Set(chronicle.of('claimed').map(({ run }) => run))
  for (const { run, keep, key, schedule } of chronicle.of('enqueued')) {
    if (known.has(run)) continue
    const succeeded = settled.get(run) === 'succeeded'
    const gone = claimed.has(run) || chronicle.touched.has(run) || key?.whenBusy === 'skip' || schedule !== undefined
    if (keep === 'all' || (keep === 'failures' && !succeeded) || !gone) {
      chronicle.violated(ENDS, `${run} (keep ${keep}) is gone without having ended`, run)
    }
  }
}
