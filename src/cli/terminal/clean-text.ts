/** Names, notes and errors come from others: their control characters must not reach the terminal. */
const CONTROLS = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

/** Keeps line breaks and tabs, and shows other control characters as escapes. */
export function cleanText(text: string): string {
  return text.replaceAll(CONTROLS, (char) => (char === '\n' || char === '\t' ? char : escaped(char)))
}

/** Like `cleanText`, but on one line: line breaks and tabs become spaces. */
export function cleanLine(text: string): string {
  return text.replaceAll(CONTROLS, (char) => (char === '\n' || char === '\t' ? ' ' : escaped(char)))
}

function escaped(char: string): string {
  return `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
}
