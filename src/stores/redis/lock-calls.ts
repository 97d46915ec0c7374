/**
 * Locks that are taken and given back, many by one script. What most of them meet is decided there, with two commands
 * each: a name that nobody holds or waits for, one that is held, or one's own; and when it is given back, that nobody
 * waits. Whatever has more to it is done by itself, by `acquire.ts` and `release.ts`.
 */
import type { AcquireRequest, AcquireResult, Lease, ReleaseRequest } from '../../core/lease.js'
import type { Mutable } from '../../core/mutable.js'
import { type Answer, type Asked, acquireLease, takeFree } from './acquire.js'
import type { Server } from './connection.js'
import { toLease } from './lease-text.js'
import { type Given, giveBack, releaseLease, type Taken } from './release.js'
import { shardOf } from './shards.js'
import { SharedCalls } from './shared-calls.js'
import { word } from './token-text.js'

/** While one script is carried out, the next is put together. */
const SHARING = { most: 12, atOnce: 4 }

/** Of how many locks is remembered what stood there when they were taken. */
const REMEMBERED = 10_000

export class LockCalls {
  readonly #server: Server
  readonly #takes: SharedCalls<Asked, Answer>[] = []
  readonly #returns: SharedCalls<Given, boolean>[] = []
  /** By holder, of whom there are as many as acquisitions. */
  readonly #taken = new Map<string, Taken>()

  constructor(server: Server) {
    this.#server = server
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { name, holder, ttlMs, instance } = request
    const shard = shardOf(name, this.#server.shards)
    const [wanted, by, inst] = [word(name), word(holder), word(instance)]
    this.#takes[shard] ??= new SharedCalls((asked) => takeFree(this.#server, shard, asked), SHARING)
    const { now, text } = await this.#takes[shard].call({ name: wanted, holder: by, request })
    if (text === '') return acquireLease(this.#server, shard, request)
    if (text.startsWith('-')) return { acquired: false, until: Number(text.slice(1)), now }
    if (text.startsWith('+')) return { acquired: true, lease: toLease(shard, name, text.slice(1)), now }
    const expiresAt = Math.round(now + ttlMs)
    if (this.#taken.size >= REMEMBERED) this.#taken.clear()
    this.#taken.set(holder, { name, line: `${text} ${now} ${expiresAt} 0 ${inst} -`, left: `${text} -` })
    const lease: Mutable<Lease> = { name, holder, token: Number(text), acquiredAt: now, expiresAt }
    if (instance !== undefined) lease.instance = instance
    return { acquired: true, lease, now }
  }

  async release(request: ReleaseRequest): Promise<boolean> {
    const { name, holder, minHoldMs = 0 } = request
    const shard = shardOf(name, this.#server.shards)
    const [wanted, by] = [word(name), word(holder)]
    const taken = this.#taken.get(holder)
    this.#taken.delete(holder)
    if (minHoldMs > 0) return releaseLease(this.#server, shard, request)
    this.#returns[shard] ??= new SharedCalls((given) => giveBack(this.#server, shard, given), SHARING)
    const isBack = await this.#returns[shard].call({
      name: wanted,
      holder: by,
      taken: taken?.name === name ? taken : undefined,
    })
    return isBack || releaseLease(this.#server, shard, request)
  }
}
