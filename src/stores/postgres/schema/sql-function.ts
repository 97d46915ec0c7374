/**
 * Functions of the database as typed values: parameters and result columns are declared once, by name.
 *
 *     const cancelRun = sqlFunction({
 *       name: 'cancel_run', source, takes: { runId: text }, gives: { outcome: text, hints: changes },
 *     })
 *     const { outcome, hints } = await call(db, cancelRun, { runId: '7' })
 *
 * Names are camel case here and snake case in SQL: `runId` is the parameter `run_id`.
 */
import type { Json } from '../../../core/checks/json.js'
import type { Database, Row, StatementOptions } from '../connection/database.js'

/** How a value is sent. `sql` makes the SQL of the argument from its placeholder, such as `$1`. */
export interface Parameter<Value> {
  readonly sql: (placeholder: string) => string
  readonly encode: (value: Value) => unknown
}

/** How a value is decoded from the text that the server sent. An optional value is left out if the column is null. */
export interface Column<Value> {
  /** The SQL expression to select, given the column's name. */
  readonly select?: (column: string) => string
  readonly decode: (text: string | null) => Value
  readonly isOptional?: true
}

export interface OptionalColumn<Value> extends Column<Value> {
  readonly isOptional: true
}

const plain = (placeholder: string): string => placeholder
const same = (value: unknown): unknown => value

export const text = { sql: plain, encode: same, decode: (value: string | null): string => value ?? '' }
export const integer = { sql: plain, encode: same, decode: (value: string | null): number => Number(value) }
export const boolean = { sql: plain, encode: same, decode: (value: string | null): boolean => value === 't' }
/** Durations may have fractions. They are rounded up, so that no limit ends too early. */
export const milliseconds = { sql: plain, encode: (value: number): unknown => Math.ceil(value) }
/** `true` if the column is true; left out otherwise. */
export const flag = {
  select: (column: string) => `nullif(${column}, false)`,
  decode: (): true => true,
  isOptional: true,
} as const
/** The changes that an operation reports, as the text that `Database.announce` takes. */
export const changes = { decode: (value: string | null): string => value ?? '{}' }

export function json<Value = Json>() {
  return { decode: (value: string | null): Value => JSON.parse(value ?? 'null') as Value }
}

/** A value of an enum type. */
export function word<Word extends string>() {
  return { decode: (value: string | null): Word => value as Word }
}

/** An array of whole numbers, such as `{1,2}`. NULLs are left out. */
export const integers = {
  sql: plain,
  encode: same as (value: readonly number[]) => unknown,
  decode: (value: string | null): number[] => (value?.match(/-?\d+/g) ?? []).map(Number),
}
export const texts = {
  sql: plain,
  encode: same as (value: readonly string[]) => unknown,
  select: (column: string) => `pg_catalog.array_to_json(${column})`,
  decode: (value: string | null): string[] => JSON.parse(value ?? '[]') as string[],
}

export function optional<Value>(
  column: Parameter<Value> & Column<Value>,
): Parameter<Value | null | undefined> & OptionalColumn<Value>
export function optional<Value>(column: Column<Value>): OptionalColumn<Value>
export function optional<Value>(column: Partial<Parameter<Value>> & Column<Value>) {
  const { encode = same } = column
  return {
    ...{ ...column, sql: plain, isOptional: true as const },
    encode: (value: Value | null | undefined) => (value === null || value === undefined ? null : encode(value)),
  }
}

/**
 * A list of rows of a composite type in `types.sql`. `toRow` returns the fields by column name; missing ones become
 * null.
 */
export function listOf<Item>(
  type: string,
  toRow: (item: Item) => Readonly<Record<string, unknown>>,
): Parameter<readonly Item[]> {
  return {
    sql: (placeholder) =>
      `array(select item from pg_catalog.json_populate_recordset(null::belfry.${type}, ${placeholder}) item)`,
    encode: (items) => JSON.stringify(items.map(toRow)),
  }
}

/** How a value is selected from columns of a table, and decoded from a row. */
export interface RowCodec<Value> {
  /** The SQL that selects the columns of a table with this alias. */
  readonly select: (alias: string) => string
  readonly read: (row: Row) => Value
}

/**
 * Columns by name: `createdAt` is the column `created_at`. The same list defines what is selected and how it is
 * decoded. `before` is the number of other columns that precede these in a row.
 */
export function columnsOf<Gives extends Columns>(
  gives: Gives,
  before = 0,
): RowCodec<Values<Gives>> & { readonly width: number } {
  const columns = Object.entries(gives)
  return {
    width: columns.length,
    select: (alias) => columns.map(([name, { select = plain }]) => select(`${alias}.${snakeCase(name)}`)).join(', '),
    read: (row) => {
      const values: Record<string, unknown> = {}
      for (const [at, [name, { decode, isOptional }]] of columns.entries()) {
        const value = row[before + at] ?? null
        if (value !== null || !isOptional) values[name] = decode(value)
      }
      return values as Values<Gives>
    },
  }
}

type Parameters = Readonly<Record<string, Parameter<never>>>
type Columns = Readonly<Record<string, Column<unknown>>>
type Arguments<Takes extends Parameters> = {
  readonly [Name in keyof Takes]: Takes[Name] extends Parameter<infer Value> ? Value : never
}
type ValueOf<Each> = Each extends Column<infer Value> ? Value : never
/** The decoded columns of a row. */
export type Values<Gives extends Columns> = {
  readonly [Name in keyof Gives as Gives[Name] extends OptionalColumn<unknown> ? never : Name]: ValueOf<Gives[Name]>
} & {
  readonly [Name in keyof Gives as Gives[Name] extends OptionalColumn<unknown> ? Name : never]?: ValueOf<Gives[Name]>
}

export interface SqlFunction<Args, Given> {
  readonly sql: string
  /** The parts of `sql`, for a statement that selects more. It must select `columns` first; `width` is their number. */
  readonly columns: string
  readonly width: number
  readonly from: string
  readonly values: (args: Args) => readonly unknown[]
  readonly read: (row: Row) => Given
}

export interface SqlFunctionOptions<Takes extends Parameters, Gives extends Columns> {
  readonly name: string
  /** The text of the SQL file that defines the function. */
  readonly source: string
  readonly takes: Takes
  readonly gives: Gives
}

export function sqlFunction<Takes extends Parameters, Gives extends Columns>({
  name,
  source,
  takes,
  gives,
}: SqlFunctionOptions<Takes, Gives>): SqlFunction<Arguments<Takes>, Values<Gives>> {
  if (!source.includes(`function belfry.${name}(`)) throw new Error(`belfry.${name} is not defined in its file`)
  const parameters = Object.entries(takes)
  const { select, read, width } = columnsOf(gives)
  const columns = select('f') || '1'
  const from = `belfry.${name}(${parameters.map(([each, { sql }], at) => `${snakeCase(each)} => ${sql(`$${at + 1}`)}`).join(', ')}) f`
  return {
    ...{ columns, from, read, width },
    sql: `select ${columns} from ${from}`,
    values: (args) => parameters.map(([each, { encode }]) => encode(args[each] as never)),
  }
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Calls a function, and returns its rows. The function must be idempotent, unless `repeatable` is false. */
export async function callAll<Args, Given>(
  db: Database,
  { sql, values, read }: SqlFunction<Args, Given>,
  args: Args,
  options?: StatementOptions,
): Promise<Given[]> {
  return (await db.write(sql, values(args), options)).map(read)
}

/** `callAll` for a function that returns one row. */
export async function call<Args, Given>(
  db: Database,
  fn: SqlFunction<Args, Given>,
  args: Args,
  options?: StatementOptions,
): Promise<Given> {
  const [row] = await db.write(fn.sql, fn.values(args), options)
  return fn.read(row ?? [])
}
