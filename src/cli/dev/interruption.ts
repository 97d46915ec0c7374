/** The end of the demo: Ctrl-C, q, SIGTERM, a closed terminal or a closed pipe. A second Ctrl-C does not wait. */
export class Interruption {
  /** Resolves when the demo is to end. */
  readonly happened: Promise<void>
  /** Told of every other key. */
  onKey: (key: string) => void = () => {}
  #finish = () => {}
  #over = false

  constructor() {
    this.happened = new Promise((resolve) => {
      this.#finish = resolve
    })
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => this.#interrupt())
    // Nobody reads any more: a pipe that was closed, or a terminal that is gone.
    process.stdout.on('error', () => {
      if (!this.#over) this.#interrupt()
    })
    this.#listenToKeys()
  }

  #interrupt(): void {
    if (this.#over) process.exit(130)
    this.#over = true
    this.#restoreTerminal()
    this.#finish()
  }

  #listenToKeys(): void {
    const { stdin } = process
    if (!stdin.isTTY) return
    stdin.setRawMode(true)
    stdin.on('error', () => this.#interrupt())
    // What was typed fast, or pasted, comes as one.
    stdin.on('data', (data: Buffer) => {
      for (const key of data.toString()) {
        if (key === '\u0003' || key === 'q') this.#interrupt()
        else this.onKey(key)
      }
    })
  }

  /** Signals reach us from the terminal again from here on. */
  #restoreTerminal(): void {
    const { stdin } = process
    if (stdin.isTTY) stdin.setRawMode(false)
    stdin.pause()
  }
}
