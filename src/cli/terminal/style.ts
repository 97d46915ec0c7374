/** ANSI colours on a terminal; none in pipes, or with `NO_COLOR`. */
export interface Style {
  dim(text: string): string
  bold(text: string): string
  green(text: string): string
  red(text: string): string
  yellow(text: string): string
  cyan(text: string): string
}

export function hasColours(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb'
}

export function styleFor(stream: { readonly isTTY?: boolean }): Style {
  const colourful = hasColours(stream)
  const paint = (open: number, close: number) => (text: string) =>
    colourful ? `\u001b[${open}m${text}\u001b[${close}m` : text
  return {
    dim: paint(2, 22),
    bold: paint(1, 22),
    green: paint(32, 39),
    red: paint(31, 39),
    yellow: paint(33, 39),
    cyan: paint(36, 39),
  }
}
