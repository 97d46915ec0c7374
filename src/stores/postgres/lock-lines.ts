/**
 * Waiting for locks without touching them. Whoever is told to wait has a place in the lock's line, and whoever frees the
 * lock hands it to the oldest place in the same step and hints at it. At that hint everybody who waits in this process
 * asks again at once. All of them look together, with one statement that only reads: the one whose turn it is finds the
 * lock his, and the others have cost nobody anything.
 *
 * - A hint that is lost, or a holder that dies: nobody trusts in looking alone for longer than a part of the time that a
 *   place is good for. Then he asks in earnest, which keeps his place and takes over what has run out.
 * - A lease that was handed over a while ago is asked for in earnest, too, so that it is his for its full time.
 * - In the advisory mode a lease counts only if it was given to the session that proves this process alive now.
 */
import type { AcquireRequest, AcquireResult, Lease, ReleaseRequest } from '../../core/lease.js'
import { textArray } from './array-text.js'
import type { Database } from './connection.js'
import { acquireLease, releaseLease } from './leases.js'
import { SharedWrites } from './shared-writes.js'

/** What a place was told when it last asked in earnest. */
interface Place {
  readonly now: number
  readonly until: number
}

interface Seen {
  readonly now: number
  readonly lease: Lease | undefined
}

/** The part of a place's time for which looking is enough. */
const LOOKING = 0.1
/** The part of a lease's time that may have passed since it was handed over. */
const HANDED_OVER = 0.02

const LOOK = `select g.at, (select belfry.now_us() / 1000), l.token, l.acquired_at, l.expires_at, l.instance
  from unnest($1::text[], $2::text[]) with ordinality as g(name, holder, at)
  left join belfry.leases l on l.name = g.name and l.holder = g.holder and l.run is null and not l.released
    and l.proof is not distinct from $3::integer`

export class LockLines {
  readonly #db: Database
  readonly #places = new Map<string, Place>()
  readonly #looks: SharedWrites<AcquireRequest, Seen>

  constructor(db: Database) {
    this.#db = db
    this.#looks = new SharedWrites((requests) => lookFor(db, requests))
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const key = placeKey(request)
    const place = this.#places.get(key)
    const seen = place === undefined ? undefined : await this.#look(request, place)
    if (seen !== undefined && !seen.acquired) return seen
    const result = seen ?? (await acquireLease(this.#db, request))
    if (result.acquired || (request.waitMs ?? 0) <= 0) this.#places.delete(key)
    else this.#places.set(key, { now: result.now, until: result.until })
    return result
  }

  release(request: ReleaseRequest): Promise<boolean> {
    this.#places.delete(placeKey(request))
    return releaseLease(this.#db, request)
  }

  /** Undefined when it is time to ask in earnest. */
  async #look(request: AcquireRequest, { now: askedAt, until }: Place): Promise<AcquireResult | undefined> {
    const [seen] = await this.#looks.write([request])
    if (seen === undefined) return undefined
    const { now, lease } = seen
    if (lease !== undefined) {
      const isFresh = lease.expiresAt - now >= request.ttlMs * (1 - HANDED_OVER)
      return isFresh ? { acquired: true, lease, now } : undefined
    }
    const mayLook = now < until && now - askedAt < (request.waitMs ?? 0) * LOOKING
    return mayLook ? { acquired: false, until, now } : undefined
  }
}

async function lookFor(db: Database, requests: readonly AcquireRequest[]): Promise<Seen[]> {
  const names = textArray(requests.map(({ name }) => name))
  const holders = textArray(requests.map(({ holder }) => holder))
  const rows = await db.inPerson((proof) => db.read(LOOK, [names, holders, proof]), { again: true })
  const seen = requests.map((): Seen => ({ now: 0, lease: undefined }))
  for (const [place, now, token, acquiredAt, expiresAt, instance] of rows) {
    const at = Number(place) - 1
    const { name = '', holder = '' } = requests[at] ?? {}
    const times = { acquiredAt: Number(acquiredAt), expiresAt: Number(expiresAt) }
    const who = instance === null || instance === undefined ? {} : { instance }
    const lease = token === null ? undefined : { name, holder, token: Number(token), ...times, ...who }
    seen[at] = { now: Number(now), lease }
  }
  return seen
}

/** Names hold no line breaks. */
function placeKey({ name, holder }: Pick<AcquireRequest, 'name' | 'holder'>): string {
  return `${name}\n${holder}`
}
