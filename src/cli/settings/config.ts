/**
 * The settings of a command. A flag overrides the environment, and that overrides the config file. All three are read by the
 * same rules, and an error names the source of the value.
 */

import { checkOptions } from '../../core/checks/known-options.js'
import { BelfryError, failure, quote } from '../../core/errors.js'
import { durationMs } from '../../time/duration.js'
import type { ConfigFile } from './config-file.js'

/** Parses the value of a setting: text from flags and the environment, JSON from a file. Throws if it is invalid. */
export type Read<Value> = (value: unknown) => Value

export interface Setting<Value> {
  readonly read: Read<Value>
  readonly fallback: Value
}

/** All settings of a config file: one file serves all commands. */
const NAMES = [
  ...(['store', 'schema', 'url', 'token', 'output', 'migrate', 'host', 'port', 'roles', 'auth', 'hosts'] as const),
  ...(['origins', 'proxies', 'openMetrics', 'app', 'release', 'log', 'logLevel', 'grace', 'maxBody'] as const),
  ...(['maxBatch', 'rate', 'cpuRate', 'maxConnections', 'addressRate', 'guessRate', 'sinks'] as const),
] as const

export type SettingName = (typeof NAMES)[number]
export type Settings = { readonly [Name in SettingName]?: Setting<unknown> }
export type ValuesOf<Table extends Settings> = {
  readonly [Key in keyof Table]: Table[Key] extends Setting<infer Value> ? Value : never
}

export function setting<Value>(read: Read<Value>, fallback: Value): Setting<Value> {
  return { read, fallback }
}

export interface SettingSources {
  readonly flags: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** The result of `configFile`. */
  readonly file?: ConfigFile | undefined
}

/** A value with its source and that source's precedence: flags 3, the environment 2, the config file 1. */
export interface Found {
  readonly value: unknown
  readonly where: string
  readonly precedence: 1 | 2 | 3
}

/** Every setting by its name: `--log-level`, `BELFRY_LOG_LEVEL` and `logLevel` are the same. */
export function settingsFinder({ flags, env, file }: SettingSources): (name: SettingName) => Found | undefined {
  if (file !== undefined) checkOptions(file.values, NAMES, `the config file ${quote(file.path)}`)
  return (name) => {
    const sources: Found[] = [
      { precedence: 3, where: `--${dashed(name)}`, value: flags[name] },
      { precedence: 2, where: envName(name), value: env[envName(name)] === '' ? undefined : env[envName(name)] },
      { precedence: 1, where: `${file?.path}: ${name}`, value: file?.values[name] },
    ]
    return sources.find(({ value }) => value !== undefined)
  }
}

export function resolveSettings<Table extends Settings>(table: Table, sources: SettingSources): ValuesOf<Table> {
  const find = settingsFinder(sources)
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

export const boolean: Read<boolean> = (value) => {
  if (typeof value === 'boolean') return value
  if (value === 'true' || value === '1' || value === 'yes') return true
  if (value === 'false' || value === '0' || value === 'no') return false
  throw invalid(value, 'it must be true or false')
}

export const duration: Read<number> = (value) => {
  if (typeof value === 'string' || typeof value === 'number') return durationMs(value as string)
  throw invalid(value, 'it must be a duration such as "10s"')
}

/** A JSON list, or text separated by commas. */
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
