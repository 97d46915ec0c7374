/**
 * Text for terminals and logs. Names, notes, payloads and errors come from others, and a control character in them could
 * overwrite a screen or forge a line of a log; a bidirectional one could show text in another order than it is stored.
 */
const HIDDEN = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

/**
 * Keeps line breaks and tabs, and shows other control characters as escapes. JSON stays equal: its strings may have such
 * escapes, and outside of strings it has no other control characters.
 */
export function cleanText(text: string): string {
  return text.replaceAll(HIDDEN, (char) => (char === '\n' || char === '\t' ? char : escaped(char)))
}

/** Like `cleanText`, but on one line: line breaks and tabs become spaces. */
export function cleanLine(text: string): string {
  return text.replaceAll(HIDDEN, (char) => (char === '\n' || char === '\t' ? ' ' : escaped(char)))
}

function escaped(char: string): string {
  return `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
}
