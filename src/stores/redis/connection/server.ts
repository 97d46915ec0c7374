/**
 * Sends operations to the server as scripts. A script runs as a whole, with no other command in between. If the server
 * does not know a script, because it is new or the script cache was flushed, the script is sent once as text.
 *
 * A command without an answer in time counts as failed. The server may still execute it later, so every script is safe
 * to repeat.
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
  /** The time limit for an answer, if the user has set one. */
  readonly timeoutMs: number | undefined
  /** How many replicas must have a write before it counts. */
  readonly waitReplicas: number
  /** Which clock the scripts read. */
  readonly clockKind: ClockKind
  /** Called with the changes that a script has reported. */
  readonly announce?: (woken: Woken) => void
}

/** A command in flight. */
interface Sent {
  readonly key: string
  /** The number of looks for late commands (`#look`) before it was sent. */
  readonly looks: number
  readonly reject: (error: unknown) => void
}

const MAX_LIMIT_MS = 5_000
const LEAVE_EVERY_MS = 1_000
/** How often `#look` runs within the time limit of an answer. */
const LOOKS_A_LIMIT = 4

export class Server {
  readonly #options: ServerOptions
  /** The key prefix of each shard. Empty until the store is open. */
  #shards: readonly string[] = []
  #turn = 0
  readonly tickets = new HeldTickets()
  readonly time: StoreTime
  readonly lease = new KnownLease()
  /** The commands in flight, oldest first. */
  readonly #inFlight = new Set<Sent>()
  #watching: (() => void) | undefined
  #looks = 0
  #leftAt = Number.NEGATIVE_INFINITY
  /** How many looks in a row found a timeout, without any answer in between. */
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

  /** Throws until the shards are known: an operation over no shards would report that nothing exists. */
  get shards(): number {
    if (this.isOpen) return this.#shards.length
    throw notOpen()
  }

  /** The next shard in turn, for data that may be in any shard. */
  anyShard(): number {
    this.#turn = (this.#turn + 1) % this.#shards.length
    return this.#turn
  }

  useShards(keys: readonly string[]): void {
    this.#shards = keys
  }

  /**
   * The lowest number that a new run or version may get. It follows the time that this client knows of, as tokens do,
   * so that numbers which a failover lost are not issued again.
   */
  numbersFrom(): number {
    return this.#options.clockKind === 'server' ? this.time.floor(0) : 0
  }

  /** Stops the timer that looks for late commands. */
  close(): void {
    this.#watching?.()
    this.#watching = undefined
  }

  /**
   * How long a command may take. By default a third of the lease, at most 5 s, so that a beat, claim or settlement can
   * be repeated before the lease expires.
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

  /** Calls a script before the shards are known. */
  callAt<Takes, Gives>(script: LuaScript<Takes, Gives>, key: string, takes: Takes): Promise<Gives> {
    return this.#call(script, key, takes)
  }

  /**
   * In a cluster a script declares two keys, neither of which ever exists. While a slot is being moved, its former
   * master then redirects the script to the new master, which refuses it (TRYAGAIN) until it owns the slot. With one
   * key the new master would execute it, although only some of the shard's keys have arrived.
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

  /** WAIT follows the command on the same connection, because WAIT counts only the writes of its own connection. */
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

  /**
   * Reads a text by one command, such as `['HGET', 'runs', '17']`. The key is named as in scripts, without its prefix.
   */
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

  /**
   * Sends a command, and rejects if no answer comes in time. A script that the server does not know is sent again as
   * text.
   */
  #answer(key: string, command: readonly string[], waits: boolean, text?: string): Promise<unknown> {
    const { prefix } = this.#options
    return new Promise((resolve, reject) => {
      const answer = this.#sendAndWait(key, command, waits)
      const sent: Sent = { key, looks: this.#looks, reject }
      this.#inFlight.add(sent)
      this.#watch()
      answer.then(
        (value) => {
          this.#inFlight.delete(sent)
          this.#silences = 0
          resolve(value)
        },
        (error: unknown) => {
          // After a timeout the caller already has an error, so the script must not be sent again.
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

  /**
   * Timeouts are counted in looks (`#look`), not in milliseconds. While the event loop is blocked, commands are not
   * sent and answers are not read. So a block counts as one look, however long it lasts.
   */
  #watch(): void {
    if (this.#watching !== undefined) return
    // `setImmediate`: the answers that have already arrived are read before the look.
    this.#watching = this.#options.clock.after(this.limitMs / LOOKS_A_LIMIT, () => setImmediate(() => this.#look()))
  }

  /** Fails the commands that have been in flight for more than `LOOKS_A_LIMIT` looks. */
  #look(): void {
    if (this.#watching === undefined) return
    this.#watching = undefined
    this.#looks += 1
    const { prefix, link } = this.#options
    const { limitMs } = this
    const doubted = new Set<string>()
    for (const sent of this.#inFlight) {
      if (this.#looks - sent.looks <= LOOKS_A_LIMIT) break
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
