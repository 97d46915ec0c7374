/**
 * Finds the statements of a text that begin or end a transaction, before the text is sent: behind comments (which may
 * be nested) and after other statements, but not inside quotes.
 *
 *     select 1; COMMIT -- done      ['COMMIT']
 *     select '; commit'             []
 *     rollback to savepoint a       []
 */
const WORDS = /\b(?:begin|start|commit|end|abort|prepare|rollback)\b/i

const BEGINS_OR_ENDS =
  /^(?:begin|start\s+transaction|commit|end|abort|prepare\s+transaction|rollback)\b(?!\s+(?:(?:work|transaction)\s+)?to\b)/i

/** Begins the body of a function in plain SQL. Its statements are stored, and not executed now. */
const BODY = /\bbegin\s+atomic\b/i

export function transactionStatements(sql: string): string[] {
  if (!WORDS.test(sql)) return []
  const text = bareText(sql)
  if (BODY.test(text)) return []
  return text
    .split(';')
    .map((statement) => statement.trim().replaceAll(/\s+/g, ' '))
    .filter((statement) => BEGINS_OR_ENDS.test(statement))
}

/** If a text is a single statement that begins or ends a transaction, that statement; otherwise undefined. */
export function onlyStatement(sql: string): string | undefined {
  const [statement, ...more] = transactionStatements(sql)
  if (statement === undefined || more.length > 0) return undefined
  const text = bareText(sql)
    .replaceAll(/[\s;]+/g, ' ')
    .trim()
  return text === statement ? statement : undefined
}

/** The SQL text of a query, in any form that `pg` takes. */
export function statementText(query: unknown): string {
  if (typeof query === 'string') return query
  const text = (query as { readonly text?: unknown } | null | undefined)?.text
  return typeof text === 'string' ? text : ''
}

/**
 * Matches line comments and quoted texts as a whole, and the beginnings of block comments and dollar quotes. A
 * backslash escapes only in a quoted text that follows an `e`.
 */
const NO_SQL =
  /--[^\n\r]*|\/\*|(?<![\w$])e'(?:[^'\\]|\\[\s\S]|'')*'?|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|(?<![\w$])\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/giu

/** The text with a blank in place of each comment, and a pair of quotes in place of each quoted part. */
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
