/**
 * How operations reach the server: by scripts, each the whole of a step that no other command can come between. A script that the
 * server does not know, because it is new to it or its scripts were flushed, is sent as text once.
 *
 * A command that is not answered in time has failed, as far as this side can tell. It may still be carried out: every
 * script is safe to repeat.
 */
import { setImmediate } from 'node:timers'
import type { Clock } from '../../../core/clock.js'
import { KnownLease } from '../../../core/connection/reply-limit.js'
import { StoreTime } from '../../../core/connection/store-time.js'
import { failure } from '../../../core/errors.js'
import { deliverTickets } from '../cluster/tickets/deliver.js'
import { HeldTickets } from '../cluster/tickets/held-tickets.js'
import type { Link } from './driver.js'
import { errorWord, storeError } from './errors.js'
import type { ClockKind, LuaScript } from './lua-script.js'
import type { Woken } from './wakes.js'

export interface ServerOptions {
  readonly link: Link
  readonly prefix: string
  readonly clock: Clock
  /** The limit that the user set for an answer. */
  readonly timeoutMs: number | undefined
  /** How many replicas must have a write before it counts. */
  readonly waitReplicas: number
  /** Which clock the scripts read. */
  readonly clockKind: ClockKind
  /** Told what others should look at. */
  readonly announce?: (woken: Woken) => void
}

/** A command that is not answered yet. */
interface Sent {
  readonly key: string
  readonly at: number
  readonly reject: (error: unknown) => void
}

const MAX_LIMIT_MS = 5_000
const LEAVE_EVERY_MS = 1_000

export class Server {
  readonly #options: ServerOptions
  /** The beginning of the keys of each shard. */
  #shards: readonly string[] = []
  #turn = 0
  readonly tickets = new HeldTickets()
  readonly time: StoreTime
  readonly lease = new KnownLease()
  /** Oldest first. */
  readonly #inFlight = new Set<Sent>()
  #watching: (() => void) | undefined
  #leftAt = Number.NEGATIVE_INFINITY
  /** How many timeouts happened in a row. */
  #silences = 0

  constructor(options: ServerOptions) {
    this.#options = options
    this.time = new StoreTime(options.clock)
  }

  get prefix(): string {
    return this.#options.prefix
  }

  get isOpen(): boolean {
    return this.#shards.length > 0
  }

  /** Throws before the number is known: an operation over no shards would answer that nothing exists. */
  get shards(): number {
    if (this.isOpen) return this.#shards.length
    throw notOpen()
  }

  /** A shard for data that can be in any of them, in turn. */
  anyShard(): number {
    this.#turn = (this.#turn + 1) % this.#shards.length
    return this.#turn
  }

  useShards(keys: readonly string[]): void {
    this.#shards = keys
  }

  /** The least that a new number of runs and versions may be, as with tokens: those that a failover lost do not come again. */
  numbersFrom(): number {
    return this.#options.clockKind === 'server' ? this.time.floor(0) : 0
  }

  /** Stops looking for commands that are late. */
  close(): void {
    this.#watching?.()
    this.#watching = undefined
  }

  /**
   * A command that has no answer after this time has failed. By default it is a third of the lease, so that a beat, claim or
   * settlement can be repeated before the lease expires.
   */
  get limitMs(): number {
    return this.#options.timeoutMs ?? Math.min(this.lease.limitMs, MAX_LIMIT_MS)
  }

  /** The monotonic clock of this process, for durations. */
  monotonic(): number {
    return this.#options.clock.monotonic()
  }

  call<Takes, Gives>(script: LuaScript<Takes, Gives>, shard: number, takes: Takes): Promise<Gives> {
    return this.#call(script, this.#key(shard), takes, shard)
  }

  /** Before the shards are known. */
  callAt<Takes, Gives>(script: LuaScript<Takes, Gives>, key: string, takes: Takes): Promise<Gives> {
    return this.#call(script, key, takes)
  }

  /**
   * In a cluster a script is said to use two keys, and neither is ever there: while a slot is moved, its former master then
   * sends the script on to the new one, which refuses it (TRYAGAIN) until the slot is its own. With one key it would carry
   * it out, on as many keys as have arrived by then.
   */
  async #call<Takes, Gives>(
    script: LuaScript<Takes, Gives>,
    key: string,
    takes: Takes,
    shard?: number,
  ): Promise<Gives> {
    const { link, clockKind, waitReplicas, announce } = this.#options
    const { sha, text } = script.composed[clockKind]
    const keys = link.isCluster ? ['2', key, `${key}whole`] : ['1', key]
    const command = ['EVALSHA', sha, ...keys, script.argument(takes)]
    const { gives, woken } = script.answer(await this.#answer(key, command, script.writes && waitReplicas > 0, text))
    if (woken.length > 0) announce?.(woken.filter((what) => what !== 'tickets') as Woken)
    if (shard !== undefined && woken.includes('tickets')) await deliverTickets(this, shard)
    return gives
  }

  #key(shard: number): string {
    const key = this.#shards[shard]
    if (key !== undefined) return key
    throw notOpen()
  }

  #sendAndWait(key: string, args: readonly string[], waits: boolean): Promise<unknown> {
    return waits ? this.#sendBoth(key, args) : this.#options.link.send(key, args)
  }

  /** WAIT follows the command on the same connection, because it waits for the writes of its own connection. */
  async #sendBoth(key: string, args: readonly string[]): Promise<unknown> {
    const { link, waitReplicas, prefix } = this.#options
    const wait = ['WAIT', String(waitReplicas), String(Math.floor(this.limitMs / 4))]
    const [reply, reached] = await link.sendBoth(key, args, wait)
    if (Number(reached) >= waitReplicas) return reply
    throw failure(
      'STORE_UNREACHABLE',
      `the Redis server of "${prefix}" has reached ${Number(reached)} of ${waitReplicas} replicas (waitReplicas) in time: check the replicas`,
    )
  }

  send(key: string, args: readonly string[]): Promise<unknown> {
    return this.#answer(key, args, false)
  }

  /** The text that one command reads: `['HGET', 'runs', '17']`, with the key as scripts name it. */
  async readText(shard: number, command: readonly string[]): Promise<string | undefined> {
    const found = await this.#read(shard, command)
    return found === null || found === undefined ? undefined : String(found)
  }

  async readTexts(shard: number, command: readonly string[]): Promise<string[]> {
    const found = await this.#read(shard, command)
    return Array.isArray(found) ? found.map(String) : []
  }

  #read(shard: number, [command = '', key = '', ...args]: readonly string[]): Promise<unknown> {
    const start = this.#key(shard)
    return this.send(start, [command, `${start}${key}`, ...args])
  }

  /** Fails when there is no answer in time. A script that the server does not know is sent again as text. */
  #answer(key: string, command: readonly string[], waits: boolean, text?: string): Promise<unknown> {
    const { clock, prefix } = this.#options
    return new Promise((resolve, reject) => {
      const answer = this.#sendAndWait(key, command, waits)
      const sent: Sent = { key, at: clock.monotonic(), reject }
      this.#inFlight.add(sent)
      this.#watch()
      answer.then(
        (value) => {
          this.#inFlight.delete(sent)
          this.#silences = 0
          resolve(value)
        },
        (error: unknown) => {
          // If the caller was already told that no answer came, a second try would have no one to report to.
          const isAwaited = this.#inFlight.delete(sent)
          if (isAwaited && text !== undefined && isUnknownScript(error))
            return resolve(this.#answer(key, ['EVAL', text, ...command.slice(2)], waits))
          if (errorWord(error) === 'READONLY') this.#leave(key)
          reject(storeError(error, prefix))
        },
      )
    })
  }

  /** A primary that becomes a replica keeps its connections. Only a new connection reaches the new primary. */
  #leave(key: string): void {
    const now = this.#options.clock.monotonic()
    if (now - this.#leftAt < LEAVE_EVERY_MS) return
    this.#leftAt = now
    this.#options.link.doubt(key, Number.POSITIVE_INFINITY)
  }

  #watch(): void {
    if (this.#watching !== undefined) return
    const { clock } = this.#options
    // Answers that arrived while the event loop was blocked are read before any command counts as late. One of them may
    // start a handler that blocks the loop again, so the time is taken before they are read.
    this.#watching = clock.after(this.limitMs / 4, () => {
      const late = clock.monotonic() - this.limitMs
      setImmediate(() => this.#giveUpLate(late))
    })
  }

  /** Fails the commands that were sent before an instant of the monotonic clock. */
  #giveUpLate(late: number): void {
    if (this.#watching === undefined) return
    this.#watching = undefined
    const { prefix, link } = this.#options
    const { limitMs } = this
    const doubted = new Set<string>()
    for (const sent of this.#inFlight) {
      if (sent.at > late) break
      this.#inFlight.delete(sent)
      doubted.add(sent.key)
      sent.reject(failure('STORE_UNREACHABLE', `the Redis server of "${prefix}" has not answered for ${limitMs} ms`))
    }
    if (doubted.size > 0) this.#silences += 1
    for (const key of doubted) link.doubt(key, this.#silences)
    if (this.#inFlight.size > 0) this.#watch()
  }
}

function notOpen(): Error {
  return failure('NOT_RUNNING', 'the Redis store is not open: call open() first')
}

function isUnknownScript(error: unknown): boolean {
  return errorWord(error) === 'NOSCRIPT' || errorWord((error as Error).cause) === 'NOSCRIPT'
}
