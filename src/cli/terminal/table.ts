/** Aligns rows in columns. When the terminal is too narrow, it cuts the columns that allow it. */
import { cleanLine } from './clean-text.js'
import type { Style } from './style.js'
import { cut, textWidth } from './text-width.js'

export interface Column<Item> {
  readonly title: string
  readonly cell: (item: Item) => string
  /** The column may be cut to this width. Without it, it is never cut. */
  readonly least?: number
  readonly right?: boolean
  readonly paint?: (style: Style, item: Item) => ((text: string) => string) | undefined
}

const GAP = '  '

export function tableLines<Item>(
  items: readonly Item[],
  columns: readonly Column<Item>[],
  style: Style,
  width: number,
): string[] {
  const rows = items.map((item) => columns.map(({ cell }) => cleanLine(cell(item))))
  const widths = fittedWidths(columns, rows, width)
  const line = (cells: readonly string[], paint: (text: string, at: number) => string) =>
    cells
      .map((text, at) => {
        const room = widths[at] ?? 0
        const fitted = cut(text, room)
        const space = ' '.repeat(Math.max(room - textWidth(fitted), 0))
        if (columns[at]?.right) return `${space}${paint(fitted, at)}`
        return at === cells.length - 1 ? paint(fitted, at) : `${paint(fitted, at)}${space}`
      })
      .join(GAP)
      .trimEnd()
  const heads = line(
    columns.map(({ title }) => title.toUpperCase()),
    (text) => style.bold(text),
  )
  const body = items.map((item, row) =>
    line(rows[row] ?? [], (text, at) => columns[at]?.paint?.(style, item)?.(text) ?? text),
  )
  return [heads, ...body]
}

/** Narrows the widest column that may be cut, until the row fits. */
function fittedWidths<Item>(
  columns: readonly Column<Item>[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] {
  const widths = columns.map(({ title }, at) =>
    rows.reduce((widest, cells) => Math.max(widest, textWidth(cells[at] ?? '')), title.length),
  )
  const total = () => widths.reduce((sum, each) => sum + each, 0) + GAP.length * (columns.length - 1)
  while (total() > width) {
    let widest = -1
    for (const [at, { least, title }] of columns.entries()) {
      const room = widths[at] ?? 0
      if (least === undefined || room <= Math.max(least, title.length)) continue
      if (widest === -1 || room > (widths[widest] ?? 0)) widest = at
    }
    if (widest === -1) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}
