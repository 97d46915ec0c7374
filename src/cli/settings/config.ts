/**
 * The settings of a command: from a config file, from the environment, and from flags, each stronger than the one before.
 * All three are read by the same rules, and an error names the place where the value stands.
 */
import { BelfryError, failure, quote } from '../../core/errors.js'
import { checkOptions } from '../../core/known-options.js'
import { durationMs } from '../../time/duration.js'
import type { ConfigFile } from './config-file.js'

/** Turns what stands somewhere into a value, or throws with what was wrong: text from flags, JSON from a file. */
export type Read<Value> = (value: unknown) => Value

export interface Setting<Value> {
  readonly read: Read<Value>
  readonly fallback: Value
}

/** What a config file may hold: one file serves all commands, and each takes from it what it needs. */
const NAMES = [
  ...(['store', 'schema', 'url', 'token', 'output', 'migrate', 'host', 'port', 'roles', 'auth', 'hosts'] as const),
  ...(['origins', 'proxies', 'openMetrics', 'app', 'release', 'log', 'logLevel', 'grace', 'maxBody'] as const),
  ...(['maxBatch', 'rate', 'addressRate', 'guessRate', 'sinks'] as const),
] as const

export type SettingName = (typeof NAMES)[number]
export type Settings = { readonly [Name in SettingName]?: Setting<unknown> }
export type ValuesOf<Table extends Settings> = {
  readonly [Key in keyof Table]: Table[Key] extends Setting<infer Value> ? Value : never
}

export function setting<Value>(read: Read<Value>, fallback: Value): Setting<Value> {
  return { read, fallback }
}

export interface Given {
  readonly flags: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** As `configFile` found it. Without it nothing is read from a file. */
  readonly file?: ConfigFile | undefined
}

/** A value with where it stands, and how much that counts: flags 3, the environment 2, the config file 1. */
export interface Found {
  readonly value: unknown
  readonly where: string
  readonly strength: 1 | 2 | 3
}

/** Every setting by its name: `--log-level`, `BELFRY_LOG_LEVEL` and `logLevel` are the same. */
export function settingsFinder({ flags, env, file }: Given): (name: SettingName) => Found | undefined {
  if (file !== undefined) checkOptions(file.values, NAMES, `the config file ${quote(file.path)}`)
  return (name) => {
    const places: Found[] = [
      { strength: 3, where: `--${dashed(name)}`, value: flags[name] },
      { strength: 2, where: envName(name), value: env[envName(name)] === '' ? undefined : env[envName(name)] },
      { strength: 1, where: `${file?.path}: ${name}`, value: file?.values[name] },
    ]
    return places.find(({ value }) => value !== undefined)
  }
}

export function resolveSettings<Table extends Settings>(table: Table, given: Given): ValuesOf<Table> {
  const find = settingsFinder(given)
  const values: Record<string, unknown> = {}
  for (const [name, { read, fallback }] of Object.entries(table)) {
    const found = find(name as SettingName)
    values[name] = found === undefined ? fallback : readFound(found, read)
  }
  return values as ValuesOf<Table>
}

export function envName(name: string): string {
  return `BELFRY_${dashed(name).replaceAll('-', '_').toUpperCase()}`
}

function dashed(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

export function readFound<Value>({ where, value }: Found, read: Read<Value>): Value {
  try {
    return read(value)
  } catch (error) {
    if (!(error instanceof BelfryError)) throw error
    throw failure('OPTION_INVALID', `${where}: ${error.message}`)
  }
}

export const text: Read<string> = (value) => {
  if (typeof value === 'string' && value.trim() !== '') return value
  throw invalid(value, 'it must be text')
}

export const yes: Read<boolean> = (value) => {
  if (typeof value === 'boolean') return value
  if (value === 'true' || value === '1' || value === 'yes') return true
  if (value === 'false' || value === '0' || value === 'no') return false
  throw invalid(value, 'it must be true or false')
}

export const duration: Read<number> = (value) => {
  if (typeof value === 'string' || typeof value === 'number') return durationMs(value as string)
  throw invalid(value, 'it must be a duration such as "10s"')
}

/** A list in JSON, or words with commas between them. */
export const texts: Read<readonly string[]> = (value) => {
  const list: unknown[] = typeof value === 'string' ? value.split(',').map((each) => each.trim()) : asList(value)
  return list.filter((each) => each !== '').map(text)
}

export function wholeNumber(least: number, most: number): Read<number> {
  return (value) => {
    const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= least && number <= most) return number
    throw invalid(value, `it must be a whole number from ${least} to ${most}`)
  }
}

export function oneOf<Choice extends string>(...choices: readonly Choice[]): Read<Choice> {
  return (value) => {
    const found = choices.find((choice) => choice === value)
    if (found !== undefined) return found
    throw invalid(value, `allowed are ${choices.join(', ')}`)
  }
}

export function someOf<Choice extends string>(...choices: readonly Choice[]): Read<readonly Choice[]> {
  return (value) => {
    const list = [...new Set(texts(value).map(oneOf(...choices)))]
    if (list.length > 0) return list
    throw invalid(value, `name at least one of ${choices.join(', ')}`)
  }
}

export const object: Read<Readonly<Record<string, unknown>>> = (value) => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw invalid(value, 'it must be an object, in the config file')
}

export function optional<Value>(read: Read<Value>): Read<Value | undefined> {
  return read
}

function asList(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  throw invalid(value, 'it must be a list')
}

function invalid(value: unknown, rule: string) {
  return failure('OPTION_INVALID', `${quote(value)} is not allowed; ${rule}`)
}
