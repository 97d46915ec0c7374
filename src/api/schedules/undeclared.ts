/**
 * Schedules that code without an `app` declared once, and that no live instance declares now. Such a schedule goes on
 * firing after it was renamed in code, because nothing says that it is the old name of another one.
 *
 * Each set of declared ids is a record, named by its hash. Instances carry the hash of their set.
 */
import { createHash } from 'node:crypto'
import { quote } from '../../core/errors.js'
import type { Store } from '../../core/store.js'

const KIND = 'declared-schedules'
const KEPT_MS = 30 * 24 * 3_600_000
/** How many sets are read, how many ids a set keeps, and how many schedules are looked up. */
const MAX_SETS = 100
const MAX_IDS = 5_000
const MAX_FOUND = 20

export function setHash(ids: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([...ids].sort()))
    .digest('hex')
}

export async function recordDeclared(store: Store, hash: string, ids: readonly string[]): Promise<void> {
  await store.records.put({ kind: KIND, id: hash, body: ids.slice(0, MAX_IDS), ttlMs: KEPT_MS })
}

/** The first of them. `own`: the hash of a set that is declared by an instance that may not have joined yet. */
export async function undeclaredSchedules(store: Store, own?: string): Promise<readonly string[]> {
  const [{ items: sets }, instances, now] = await Promise.all([
    store.records.list({ kind: KIND, limit: MAX_SETS }),
    store.instances.list(),
    store.now(),
  ])
  const live = new Set(instances.filter(({ expiresAt }) => expiresAt >= now).map(({ declarations }) => declarations))
  if (own !== undefined) live.add(own)
  const isLive = ({ id }: (typeof sets)[number]) => live.has(id)
  // Without a live set, the app that declares them is down.
  if (!sets.some(isLive)) return []
  const declared = new Set(sets.filter(isLive).flatMap(idsOf))
  const former = new Set(sets.filter((set) => !isLive(set)).flatMap(idsOf))
  const found: string[] = []
  for (const id of former) {
    if (declared.has(id) || found.length >= MAX_FOUND) continue
    const schedule = await store.schedules.get(id)
    if (schedule !== undefined && schedule.definition.app === undefined) found.push(id)
  }
  return found
}

/** The commands that remove them. */
export function undeclaredText(ids: readonly string[]): string {
  return ids.map((id) => `belfry rm ${quote(id)}`).join(', ')
}

function idsOf({ body }: { readonly body: unknown }): string[] {
  return Array.isArray(body) ? body.filter((id) => typeof id === 'string') : []
}
