/**
 * How operations reach the server: by scripts, each the whole of a step that nobody can come between. A script that the
 * server does not know, because it is new to it or its scripts were flushed, is sent as text once.
 *
 * A command that is not answered in time has failed, as far as this side can tell. It may still be carried out: every
 * script is safe to repeat.
 */
import { setImmediate } from 'node:timers'
import type { Clock } from '../../../core/clock.js'
import { failure } from '../../../core/errors.js'
import { HeldTickets } from '../cluster/held-tickets.js'
import type { Link } from './driver.js'
import { errorWord, storeError } from './errors.js'
import { Sent, UnderWay } from './in-flight.js'
import type { ClockKind, ScriptSource } from './script.js'
import { StoreTime } from './store-time.js'
import { WAKE_TICKETS } from './wakes.js'

/** What a script answers: texts, numbers and lists of them. */
export type Reply = null | string | number | readonly Reply[]

export interface ServerOptions {
  readonly link: Link
  readonly prefix: string
  readonly clock: Clock
  readonly timeoutMs: number
  /** How many replicas must have what was written before it counts. */
  readonly waitReplicas: number
  /** Which clock the scripts read. */
  readonly clockKind: ClockKind
  /** Told what changed, as bits. */
  readonly announce: (wakes: number) => void
  /** Sends the tickets that a shard has for others. */
  readonly deliver: (shard: number) => Promise<void>
}

const DAY_MS = 86_400_000
const LEAVE_EVERY_MS = 1_000

export class Server {
  readonly #options: ServerOptions
  /** The beginning of the keys of each shard. */
  #shards: readonly string[] = []
  #turn = 0
  readonly tickets = new HeldTickets()
  readonly time: StoreTime
  readonly #underWay = new UnderWay()
  #watching: (() => void) | undefined
  #leftAt = Number.NEGATIVE_INFINITY
  /** How often in a row something was waited for in vain. */
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

  /** Refused while they are not known: an operation that goes over none of them would answer that nothing is there. */
  get shards(): number {
    if (this.isOpen) return this.#shards.length
    throw notOpen()
  }

  /** One shard after the other, for what may be anywhere. */
  anyShard(): number {
    this.#turn = (this.#turn + 1) % this.#shards.length
    return this.#turn
  }

  useShards(keys: readonly string[]): void {
    this.#shards = keys
  }

  /** After how long the text of a lock may go: long after its time is over, and never while time is turned by hand. */
  keepMs(ttlMs: number): number {
    return this.#options.clockKind === 'handTurned' ? DAY_MS : Math.max(Math.ceil(ttlMs * 3), 1_000)
  }

  /** The least that a new number of runs and versions may be, as with tokens: those that a failover lost do not come again. */
  numbersFrom(): number {
    return this.#options.clockKind === 'server' ? this.time.floor(0) : 0
  }

  /** Watches no more over what is under way. */
  close(): void {
    this.#watching?.()
    this.#watching = undefined
  }

  /** Our own time, for measuring how long an answer took. */
  monotonic(): number {
    return this.#options.clock.monotonic()
  }

  announce(wakes: number): void {
    if (wakes > 0) this.#options.announce(wakes)
  }

  /** A script that only looks. */
  read(script: ScriptSource, shard: number, args: readonly (string | number)[] = []): Promise<Reply> {
    return this.run(script, this.#key(shard), args)
  }

  /** A script that changes something. The last that it answers is what to hint at. */
  async write(script: ScriptSource, shard: number, args: readonly (string | number)[] = []): Promise<readonly Reply[]> {
    const reply = listOf(await this.change(script, shard, args))
    const bits = Number(reply.at(-1))
    this.announce(bits & ~WAKE_TICKETS)
    if ((bits & WAKE_TICKETS) !== 0) await this.#options.deliver(shard)
    return reply
  }

  /** A script that changes something and leaves the hints to the caller. */
  change(script: ScriptSource, shard: number, args: readonly (string | number)[]): Promise<Reply> {
    return this.run(script, this.#key(shard), args, this.#options.waitReplicas > 0)
  }

  /**
   * In a cluster a script is said to use two keys, and neither is ever there: while a slot is moved, its former master then
   * sends the script on to the new one, which refuses it (TRYAGAIN) until the slot is its own. With one key it would carry
   * it out, on as many keys as have arrived by then.
   */
  run(script: ScriptSource, key: string, args: readonly (string | number)[], waits = false): Promise<Reply> {
    const { sha, text } = script[this.#options.clockKind]
    const head = this.#options.link.isCluster ? ['EVALSHA', sha, '2', key, `${key}whole`] : ['EVALSHA', sha, '1', key]
    return this.#answer(key, head.concat(args.map(String)), waits, text)
  }

  #key(shard: number): string {
    const key = this.#shards[shard]
    if (key !== undefined) return key
    throw notOpen()
  }

  #sendAndWait(key: string, args: readonly string[], waits: boolean): Promise<unknown> {
    return waits ? this.#sendBoth(key, args) : this.#options.link.send(key, args)
  }

  /** Both over the same connection, one behind the other: the waiting is for this very command. */
  async #sendBoth(key: string, args: readonly string[]): Promise<unknown> {
    const { link, waitReplicas, timeoutMs, prefix } = this.#options
    const wait = ['WAIT', String(waitReplicas), String(Math.floor(timeoutMs / 4))]
    const [reply, reached] = await link.sendBoth(key, args, wait)
    if (Number(reached) >= waitReplicas) return reply
    throw failure(
      'STORE_UNREACHABLE',
      `the Redis server of "${prefix}" has reached ${Number(reached)} of ${waitReplicas} replicas (waitReplicas) in time: check the replicas`,
    )
  }

  send(key: string, args: readonly string[]): Promise<Reply> {
    return this.#answer(key, args, false)
  }

  /**
   * What is answered in time; a script that the server does not know is sent again as text. One promise and one timer for
   * all, because more of either would cost more than the rest of sending a command.
   */
  #answer(key: string, command: readonly string[], waits: boolean, text?: string): Promise<Reply> {
    const { clock, prefix } = this.#options
    return new Promise((resolve, reject) => {
      const answer = this.#sendAndWait(key, command, waits)
      const sent = new Sent(key, clock.monotonic(), reject)
      this.#underWay.add(sent)
      this.#watch()
      answer.then(
        (value) => {
          this.#underWay.delete(sent)
          this.#silences = 0
          resolve(value as Reply)
        },
        (error: unknown) => {
          // Whoever asked was told that there was no answer: nobody would hear what becomes of a second try.
          const isAwaited = this.#underWay.delete(sent)
          if (isAwaited && text !== undefined && isUnknownScript(error))
            return resolve(this.#answer(key, ['EVAL', text, ...command.slice(2)], waits))
          if (errorWord(error) === 'READONLY') this.#leave(key)
          reject(storeError(error, prefix))
        },
      )
    })
  }

  /** A primary that has become a replica keeps its connections: where the new one is, only a new connection can tell. */
  #leave(key: string): void {
    const now = this.#options.clock.monotonic()
    if (now - this.#leftAt < LEAVE_EVERY_MS) return
    this.#leftAt = now
    this.#options.link.doubt(key, Number.POSITIVE_INFINITY)
  }

  #watch(): void {
    if (this.#watching !== undefined) return
    const { clock, timeoutMs } = this.#options
    // What has arrived while the event loop was blocked is read before anything counts as late.
    this.#watching = clock.after(timeoutMs / 4, () => setImmediate(this.#giveUpLate))
  }

  readonly #giveUpLate = (): void => {
    if (this.#watching === undefined) return
    this.#watching = undefined
    const { clock, timeoutMs, prefix, link } = this.#options
    const late = clock.monotonic() - timeoutMs
    const doubted = new Set<string>()
    for (let sent = this.#underWay.oldest; sent !== undefined && sent.at <= late; sent = this.#underWay.oldest) {
      this.#underWay.delete(sent)
      doubted.add(sent.key)
      sent.reject(failure('STORE_UNREACHABLE', `the Redis server of "${prefix}" has not answered for ${timeoutMs} ms`))
    }
    if (doubted.size > 0) this.#silences += 1
    for (const key of doubted) link.doubt(key, this.#silences)
    if (this.#underWay.oldest !== undefined) this.#watch()
  }
}

function notOpen(): Error {
  return failure('NOT_RUNNING', 'the Redis store is not open: call open() first')
}

function isUnknownScript(error: unknown): boolean {
  return errorWord(error) === 'NOSCRIPT' || errorWord((error as Error).cause) === 'NOSCRIPT'
}

/** A list among what a script answered. */
export function listOf(reply: Reply | undefined): readonly Reply[] {
  return Array.isArray(reply) ? reply : []
}

export function textsOf(reply: Reply | undefined): readonly string[] {
  return listOf(reply).map((text) => (text === null ? '' : String(text)))
}
