/**
 * Hints from other processes, by LISTEN. While the connection is down polling does all there is to do; after such a gap
 * everything may have changed, so everything is hinted at.
 */
import type { DirectClient, DirectUse } from './direct-connection.js'

export interface ListenerOptions {
  readonly channel: string
  /** What this process sends itself, it has already been told. */
  readonly self: string
  readonly heard: (bits: number) => void
}

const EVERYTHING = 31

export class Listener implements DirectUse {
  readonly #options: ListenerOptions

  constructor(options: ListenerOptions) {
    this.#options = options
  }

  async prepare(client: DirectClient): Promise<void> {
    const { channel, self, heard } = this.#options
    client.on('notification', ({ payload = '' }) => {
      const [from, bits] = payload.split(' ')
      if (from !== self) heard(Number(bits) || EVERYTHING)
    })
    await client.query(`listen "${channel}"`)
  }

  ready(first: boolean): void {
    if (!first) this.#options.heard(EVERYTHING)
  }

  broken(): void {}
}
