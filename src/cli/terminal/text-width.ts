/** How many columns of a terminal a text takes: marks take none, and letters of East Asia and emoji take two. */
const NONE = /^(?:\p{M}|[\u200b-\u200d])$/u
const TWO =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}$/u
/** Most texts hold nothing else, and are as wide as they are long. */
const PLAIN = /^[\x20-\x7e]*$/

export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const char of text) width += charWidth(char)
  return width
}

/** As much of a text as fits, with a sign where it goes on. */
export function cut(text: string, room: number): string {
  if (textWidth(text) <= room) return text
  let [kept, width] = ['', 0]
  for (const char of text) {
    width += charWidth(char)
    if (width > room - 1) break
    kept += char
  }
  return `${kept}…`
}

function charWidth(char: string): number {
  if (NONE.test(char)) return 0
  return TWO.test(char) ? 2 : 1
}
