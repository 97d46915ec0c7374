/** Keys and signals of the demo. Ctrl-C, q, SIGTERM and a closed terminal or pipe end it; a second Ctrl-C exits at once. */
export class DemoInput {
  /** Resolves when the user ends the demo. */
  readonly ended: Promise<void>
  /** Called for every other key. */
  onKey: (key: string) => void = () => {}
  #finish = () => {}
  #hasEnded = false

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#finish = resolve
    })
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => this.#interrupt())
    // The pipe or terminal was closed.
    process.stdout.on('error', () => {
      if (!this.#hasEnded) this.#interrupt()
    })
    this.#listenToKeys()
  }

  #interrupt(): void {
    if (this.#hasEnded) process.exit(130)
    this.#hasEnded = true
    this.#restoreTerminal()
    this.#finish()
  }

  #listenToKeys(): void {
    const { stdin } = process
    if (!stdin.isTTY) return
    stdin.setRawMode(true)
    stdin.on('error', () => this.#interrupt())
    // Keys typed fast, or pasted, arrive in one chunk.
    stdin.on('data', (data: Buffer) => {
      for (const key of data.toString()) {
        if (key === '\u0003' || key === 'q') this.#interrupt()
        else this.onKey(key)
      }
    })
  }

  /** Leaves raw mode, so that Ctrl-C is a signal again. */
  #restoreTerminal(): void {
    const { stdin } = process
    if (stdin.isTTY) stdin.setRawMode(false)
    stdin.pause()
  }
}
