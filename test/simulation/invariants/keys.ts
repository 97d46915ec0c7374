/**
 * Committed effects of one key never overlap. A register per key represents the effects: it accepts a write when the
 * store accepts the settlement, and the write's token must be the newest with which the key was ever claimed.
 */
import type { Chronicle, EntryOf } from '../chronicle.js'

const GROWS = 'tokens of a key only grow'
const FENCED = 'a fenced attempt commits nothing'
const APART = 'committed effects of a key do not overlap'
const IN_TURN = 'runs that wait for a key get it in the order of their age'

interface Span {
  readonly claim: EntryOf<'claimed'>
  readonly settled: EntryOf<'settled'>
}

export function checkKeys(chronicle: Chronicle): void {
  const claims = new Map<string, EntryOf<'claimed'>[]>()
  for (const claim of chronicle.of('claimed')) {
    if (claim.key === undefined) continue
    const earlier = claims.get(claim.key.name) ?? []
    claims.set(claim.key.name, [...earlier, claim])
    const last = earlier.at(-1)
    if (last === undefined || last.token < claim.token) continue
    const text = `${claim.key.name}: ${claim.run} got ${claim.token} after ${last.run} had got ${last.token}`
    chronicle.violated(GROWS, text, claim.run, last.run)
  }
  const settled = new Map(chronicle.of('settled').map((entry) => [`${entry.run}@${entry.token}`, entry]))
  for (const [key, ofKey] of claims) checkKey(chronicle, key, ofKey, settled)
}

function checkKey(
  chronicle: Chronicle,
  key: string,
  claims: readonly EntryOf<'claimed'>[],
  settled: ReadonlyMap<string, EntryOf<'settled'>>,
): void {
  const spans = claims.flatMap((claim): Span[] => {
    const settlement = settled.get(`${claim.run}@${claim.token}`)
    return settlement === undefined ? [] : [{ claim, settled: settlement }]
  })
  const limit = Math.max(...claims.map((claim) => claim.key?.limit ?? 1))
  for (const { claim } of spans) {
    const during = spans.filter((other) => isWithin(claim.order, other))
    if (during.length <= limit) continue
    const runs = during.map((span) => span.claim.run)
    chronicle.violated(APART, `${key}: ${runs.join(', ')} all held it, the limit is ${limit}`, ...runs)
  }
  if (limit === 1) checkRegister(chronicle, key, claims, spans)
  checkOrder(chronicle, key, claims)
}

function isWithin(order: number, { claim, settled }: Span): boolean {
  return claim.order <= order && order < settled.order
}

function checkRegister(chronicle: Chronicle, key: string, claims: readonly EntryOf<'claimed'>[], spans: Span[]): void {
  for (const { claim, settled } of spans) {
    const newer = claims.find(({ order, token }) => order < settled.order && token > claim.token)
    if (newer === undefined) continue
    const text = `${key}: ${claim.run} settled with ${claim.token} after ${newer.run} had got ${newer.token}`
    chronicle.violated(FENCED, text, claim.run, newer.run)
  }
}

/** Checks the order of runs that no operator touched and that were claimed only once. */
function checkOrder(chronicle: Chronicle, key: string, claims: readonly EntryOf<'claimed'>[]): void {
  const began = new Map<string, EntryOf<'claimed'>>()
  for (const claim of claims) if (!began.has(claim.run)) began.set(claim.run, claim)
  const waited = chronicle
    .of('enqueued')
    .filter(({ run, key: own, origin }) => own?.name === key && origin === 'enqueue' && !chronicle.touched.has(run))
  for (const [at, younger] of waited.entries()) {
    const claim = began.get(younger.run)
    if (claim === undefined) continue
    for (const older of waited.slice(0, at)) {
      const turn = began.get(older.run)
      if (turn === undefined || turn.order < claim.order || older.dueAt > claim.at) continue
      if (turn.order === claim.order && turn.token < claim.token) continue
      chronicle.violated(IN_TURN, `${key}: ${younger.run} began before ${older.run}`, younger.run, older.run)
    }
  }
}
