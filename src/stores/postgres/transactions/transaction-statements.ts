/**
 * The statements of a text that begin or end a transaction, as far as one can tell before the server does: behind
 * comments, which may be nested, after other statements, and not in what only looks like one inside of quotes.
 */
const WORDS = /\b(?:begin|start|commit|end|abort|prepare|rollback)\b/i

const BEGINS_OR_ENDS =
  /^(?:begin|start\s+transaction|commit|end|abort|prepare\s+transaction|rollback)\b(?!\s+(?:(?:work|transaction)\s+)?to\b)/i

/** The body of a function in plain SQL, whose statements are not the text's. */
const BODY = /\bbegin\s+atomic\b/i

export function transactionWords(sql: string): string[] {
  if (!WORDS.test(sql)) return []
  const text = bareText(sql)
  if (BODY.test(text)) return []
  return text
    .split(';')
    .map((statement) => statement.trim().replaceAll(/\s+/g, ' '))
    .filter((statement) => BEGINS_OR_ENDS.test(statement))
}

/** A text that may be a begin, commit or rollback and nothing else; undefined for any other. */
export function onlyStatement(sql: string): string | undefined {
  const words = transactionWords(sql)
  const text =
    words.length === 1
      ? bareText(sql)
          .replaceAll(/[\s;]+/g, ' ')
          .trim()
      : undefined
  return text === words[0] ? text : undefined
}

/** What is not SQL to the server: comments, and what is quoted in any way. Escapes count where the quote has an e. */
const NO_SQL =
  /--[^\n\r]*|\/\*|(?<![\w$])e'(?:[^'\\]|\\[\s\S]|'')*'?|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|(?<![\w$])\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/giu

/** The text with a blank for each comment, and a pair of quotes for each thing that is quoted. */
function bareText(sql: string): string {
  let [bare, at] = ['', 0]
  for (;;) {
    NO_SQL.lastIndex = at
    const found = NO_SQL.exec(sql)
    if (found === null) return bare + sql.slice(at)
    const [mark] = found
    bare += sql.slice(at, found.index) + (mark.startsWith('-') || mark.startsWith('/') ? ' ' : "''")
    at = endOf(sql, mark, found.index)
  }
}

function endOf(sql: string, mark: string, start: number): number {
  if (mark === '/*') return endOfComment(sql, start)
  const after = start + mark.length
  if (!mark.startsWith('$')) return after
  const end = sql.indexOf(mark, after)
  return end === -1 ? sql.length : end + mark.length
}

function endOfComment(sql: string, start: number): number {
  const marks = /\/\*|\*\//g
  marks.lastIndex = start
  let depth = 0
  for (let found = marks.exec(sql); found !== null; found = marks.exec(sql)) {
    depth += found[0] === '/*' ? 1 : -1
    if (depth === 0) return marks.lastIndex
  }
  return sql.length
}
