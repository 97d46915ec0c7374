/** A progress bar on one line of the terminal. Without a terminal it prints nothing. */
import { cleanLine } from './clean-text.js'
import { styleFor } from './style.js'

const EVERY_MS = 100
const CELLS = 24
const CLEAR = '\r\u001b[K'

export class ProgressBar {
  readonly #isShown = process.stderr.isTTY === true && process.env.TERM !== 'dumb'
  readonly #style = styleFor(process.stderr)
  #shownAt = Number.NEGATIVE_INFINITY

  /** `share` is from 0 to 1, or undefined if the total is unknown. */
  show(share: number | undefined, text: string): void {
    if (!this.#isShown || performance.now() - this.#shownAt < EVERY_MS) return
    this.#shownAt = performance.now()
    const width = Math.max((process.stderr.columns || 80) - 1, 20)
    const bar = share === undefined ? '' : `${this.#bar(share)} `
    const room = width - (share === undefined ? 0 : CELLS + 6)
    process.stderr.write(`${CLEAR}${bar}${cleanLine(text).slice(0, room)}`)
  }

  /** Clears the line for other output. */
  clear(): void {
    if (this.#isShown && this.#shownAt > 0) process.stderr.write(CLEAR)
  }

  #bar(share: number): string {
    const done = Math.round(Math.min(Math.max(share, 0), 1) * CELLS)
    const percent = String(Math.floor(Math.min(share, 1) * 100)).padStart(3)
    return `${this.#style.cyan('█'.repeat(done))}${this.#style.dim('░'.repeat(CELLS - done))} ${percent}%`
  }
}
