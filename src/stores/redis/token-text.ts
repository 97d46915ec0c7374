/**
 * Words as they stand in the store's texts, where a space separates words and `-` stands for none. Scripts compare them
 * and make keys of them without knowing what they say.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const SPECIAL = /[%\u0000-\u0020\u007f]/g

export function word(value: string | undefined): string {
  if (value === undefined) return '-'
  if (value === '') return '%'
  if (value === '-') return '%2d'
  SPECIAL.lastIndex = 0
  if (!SPECIAL.test(value)) return value
  return value.replace(SPECIAL, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
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
