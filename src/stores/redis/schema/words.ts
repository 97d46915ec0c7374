/**
 * Words as they stand in the store's texts, where a space separates words and `-` stands for none. Scripts compare them
 * and make keys of them without knowing what they say.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const SPECIAL = /[%\u0000-\u0020\u007f]/g
const [SPACE, PERCENT, DELETE] = [0x20, 0x25, 0x7f]

export function word(value: string | undefined): string {
  if (value === undefined) return '-'
  if (value === '') return '%'
  if (value === '-') return '%2d'
  return isPlain(value)
    ? value
    : value.replace(SPECIAL, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

/** Asked for every lock: a loop is quicker than the expression, which has to be set up each time. */
function isPlain(value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at)
    if (code <= SPACE || code === PERCENT || code === DELETE) return false
  }
  return true
}

export function fromWord(text: string): string | undefined {
  if (text === '-') return undefined
  if (text === '%') return ''
  if (!text.includes('%')) return text
  return text.replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

export function numberOf(text: string | undefined): number | undefined {
  return text === undefined || text === '-' || text === '' ? undefined : Number(text)
}
