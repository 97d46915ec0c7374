/** The width of text in terminal columns: combining marks take none, East Asian characters and emoji two. */
const NONE = /^(?:\p{M}|[\u200b-\u200d])$/u
const TWO =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}$/u

export function textWidth(text: string): number {
  let width = 0
  for (const char of text) width += charWidth(char)
  return width
}

/** Cuts text to the width, ending with "…". */
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
