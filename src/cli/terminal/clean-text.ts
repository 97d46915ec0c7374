/** What commands write: every text passes here, so that no control character reaches the terminal but the colours of `Style`. */
import { cleanText } from '../../core/visible-text.js'
import { hasColours } from './style.js'

export { cleanLine, cleanText } from '../../core/visible-text.js'

/** The codes of `Style`. */
const COLOURS = new RegExp(`(${String.fromCharCode(27)}\\[(?:1|2|22|31|32|33|36|39)m)`)

interface Terminal {
  readonly isTTY?: boolean
  write(text: string): boolean
}

/** Writes text with its line break. Colours pass only on a terminal: elsewhere `Style` makes none. */
export function writeLine(stream: Terminal, text: string): boolean {
  return stream.write(`${hasColours(stream) ? coloured(text) : cleanText(text)}\n`)
}

function coloured(text: string): string {
  return text
    .split(COLOURS)
    .map((part, at) => (at % 2 === 1 ? part : cleanText(part)))
    .join('')
}
