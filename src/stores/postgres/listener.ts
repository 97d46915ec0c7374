/**
 * Hints from other processes, by LISTEN on a connection of its own, which a pooler must not take away. When it breaks it
 * is opened again, ever less often; meanwhile polling does all there is to do. After a gap everything may have changed,
 * so everything is hinted at.
 */
import { type Clock, sleep } from '../../core/clock.js'

/** What is called of a client of `pg` that is used for this alone. */
export interface ListenClient {
  connect(): Promise<unknown>
  query(sql: string): Promise<unknown>
  on(event: 'notification', listener: (message: { readonly payload?: string | undefined }) => void): unknown
  on(event: 'error' | 'end', listener: () => void): unknown
  end(): Promise<void>
}

export interface ListenerOptions {
  readonly open: () => ListenClient
  readonly channel: string
  /** What this process sends itself, it has already been told. */
  readonly self: string
  readonly clock: Clock
  readonly heard: (bits: number) => void
}

interface Connected {
  /** Resolves when the connection breaks. */
  readonly broken: Promise<void>
}

const EVERYTHING = 31
const FIRST_WAIT_MS = 100
const MAX_WAIT_MS = 10_000

export class Listener {
  readonly #options: ListenerOptions
  readonly #closed = new AbortController()
  #client: ListenClient | undefined

  constructor(options: ListenerOptions) {
    this.#options = options
  }

  /** Resolves when the first connection listens, or has failed: then it goes on trying. */
  async open(): Promise<void> {
    void this.#stayConnected(await this.#connect())
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#client?.end().catch(() => {})
  }

  async #stayConnected(first: Connected | undefined): Promise<void> {
    let [connected, waitMs] = [first, FIRST_WAIT_MS]
    while (!this.#closed.signal.aborted) {
      if (connected !== undefined) {
        await connected.broken
        waitMs = FIRST_WAIT_MS
      }
      await sleep(this.#options.clock, waitMs * (0.5 + Math.random() / 2), this.#closed.signal)
      if (this.#closed.signal.aborted) return
      waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)
      connected = await this.#connect()
      if (connected !== undefined) this.#options.heard(EVERYTHING)
    }
  }

  async #connect(): Promise<Connected | undefined> {
    const { open, channel, self, heard } = this.#options
    const client = open()
    const broken = new Promise<void>((resolve) => {
      client.on('error', resolve)
      client.on('end', resolve)
    })
    client.on('notification', ({ payload = '' }) => {
      const [from, bits] = payload.split(' ')
      if (from !== self) heard(Number(bits) || EVERYTHING)
    })
    try {
      await client.connect()
      await client.query(`listen "${channel}"`)
    } catch {
      await client.end().catch(() => {})
      return undefined
    }
    this.#client = client
    if (this.#closed.signal.aborted) await client.end().catch(() => {})
    return { broken: broken.then(() => client.end().catch(() => {})) }
  }
}
