/**
 * Locks that are taken and given back, many by one script. What most of them meet is decided there, with two commands
 * each: a name that nobody holds or waits for, one that is held, or one's own; and when it is given back, that nobody
 * waits. Whatever has more to it is done by itself, by `acquire.ts` and `release.ts`.
 */
import type { AcquireRequest, AcquireResult, Lease, ReleaseRequest } from '../../../core/lease.js'
import type { Mutable } from '../../../core/mutable.js'
import { shardOf } from '../cluster/shards.js'
import { SharedCalls } from '../connection/coalesced-writes.js'
import type { Server } from '../connection/server.js'
import { word } from '../schema/words.js'
import { type Asked, acquireLease, takeFree, takeOne } from './acquire.js'
import { toLease } from './lease-codec.js'
import { type Given, giveBack, giveOneBack, releaseLease, type Taken } from './release.js'

/** While one script is carried out, the next is put together. */
const SHARING = { most: 12, atOnce: 4 }

/** Of how many locks is remembered what stood there when they were taken. */
const REMEMBERED = 10_000

export class LockCalls {
  readonly #server: Server
  /** By shard. */
  readonly #takes: SharedCalls<Asked, AcquireResult>[] = []
  readonly #returns: SharedCalls<Given, boolean>[] = []
  /** By holder, of whom there are as many as acquisitions. */
  readonly #taken = new Map<string, Taken>()

  constructor(server: Server) {
    this.#server = server
  }

  acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { name, holder, instance } = request
    const shard = shardOf(name, this.#server.shards)
    this.#takes[shard] ??= this.#takesOf(shard)
    return this.#takes[shard].call({ name: word(name), holder: word(holder), instance: word(instance), request })
  }

  release(request: ReleaseRequest): Promise<boolean> {
    const { name, holder, minHoldMs = 0 } = request
    const shard = shardOf(name, this.#server.shards)
    const taken = this.#taken.get(holder)
    this.#taken.delete(holder)
    if (minHoldMs > 0) return releaseLease(this.#server, shard, request)
    this.#returns[shard] ??= this.#returnsOf(shard)
    const own = taken?.name === name ? taken : undefined
    return this.#returns[shard].call({ name: word(name), holder: word(holder), taken: own, request })
  }

  #takesOf(shard: number): SharedCalls<Asked, AcquireResult> {
    const meaning = (asked: Asked, text: string, now: number) => this.#answerOf(shard, asked, text, now)
    return new SharedCalls(
      (asked) => takeFree(this.#server, shard, asked, meaning),
      SHARING,
      (asked) => takeOne(this.#server, shard, asked, meaning),
    )
  }

  #returnsOf(shard: number): SharedCalls<Given, boolean> {
    const byItself = ({ request }: Given) => releaseLease(this.#server, shard, request)
    return new SharedCalls(
      (given) => giveBack(this.#server, shard, given, byItself),
      SHARING,
      (given) => giveOneBack(this.#server, shard, given, byItself),
    )
  }

  #answerOf(shard: number, asked: Asked, text: string, now: number): AcquireResult | Promise<AcquireResult> {
    const { name, holder, ttlMs, instance } = asked.request
    if (text === '') return acquireLease(this.#server, shard, asked.request)
    if (text.startsWith('-')) return { acquired: false, until: Number(text.slice(1)), now }
    if (text.startsWith('+')) return { acquired: true, lease: toLease(shard, name, text.slice(1)), now }
    const expiresAt = Math.round(now + ttlMs)
    if (this.#taken.size >= REMEMBERED) this.#taken.clear()
    const line = `${asked.holder} ${text} ${now} ${expiresAt} 0 ${asked.instance} -`
    this.#taken.set(holder, { name, text: `${text} -\n${line}` })
    const lease: Mutable<Lease> = { name, holder, token: Number(text), acquiredAt: now, expiresAt }
    if (instance !== undefined) lease.instance = instance
    return { acquired: true, lease, now }
  }
}
