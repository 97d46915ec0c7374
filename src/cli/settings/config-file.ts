/**
 * The config file: --config or BELFRY_CONFIG, else `belfry.config.*` in the current folder. JSON and YAML hold data;
 * JavaScript and TypeScript export it as their default, and may create sinks in code.
 */
import { existsSync, readFileSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { errorRecord, failure } from '../../core/errors.js'
import { quotePath } from '../terminal/quote-path.js'
import type { SettingSources } from './config.js'

export interface ConfigFile {
  readonly path: string
  readonly values: Readonly<Record<string, unknown>>
}

const NAMES = ['ts', 'mts', 'js', 'mjs', 'json', 'yaml', 'yml'].map((extension) => `belfry.config.${extension}`)
const CODE = ['.ts', '.mts', '.js', '.mjs']

/** Resolves to undefined when there is no config file. Refuses a folder that has two, as ambiguous. */
export async function configFile(
  flags: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
  folder = process.cwd(),
): Promise<ConfigFile | undefined> {
  const named = flags.config ?? env.BELFRY_CONFIG
  if (typeof named === 'string' && named !== '') return read(resolve(folder, named), named)
  const found = NAMES.filter((name) => existsSync(resolve(folder, name)))
  if (found.length > 1) {
    throw failure('OPTION_INVALID', `there are ${found.join(' and ')}: keep one of them, or name it with --config`)
  }
  const [name] = found
  return name === undefined ? undefined : read(resolve(folder, name), name)
}

/** The flags, the environment and the config file of a command. */
export async function settingSources(
  flags: SettingSources['flags'],
): Promise<SettingSources & { readonly file: ConfigFile | undefined }> {
  return { flags, env: process.env, file: await configFile(flags, process.env) }
}

async function read(file: string, path: string): Promise<ConfigFile> {
  const values = await load(file, path)
  if (typeof values === 'object' && values !== null && !Array.isArray(values)) {
    return { path, values: values as Readonly<Record<string, unknown>> }
  }
  const how = CODE.includes(extname(file)) ? ', exported as default' : ''
  throw failure('OPTION_INVALID', `the config file ${quotePath(path)}: its options must be an object${how}`)
}

async function load(file: string, path: string): Promise<unknown> {
  const extension = extname(file)
  try {
    if (CODE.includes(extension)) return await importDefault(file)
    const text = readFileSync(file, 'utf8')
    if (extension !== '.yaml' && extension !== '.yml') return JSON.parse(text) as unknown
    const { parse } = await import('yaml')
    return parse(text) as unknown
  } catch (error) {
    throw failure('OPTION_INVALID', `the config file ${quotePath(path)} cannot be read: ${reason(error)}`, {
      cause: error,
    })
  }
}

async function importDefault(file: string): Promise<unknown> {
  const module = (await import(pathToFileURL(file).href)) as { readonly default?: unknown }
  return module.default
}

function reason(error: unknown): string {
  const { code, message } = errorRecord(error)
  if (code !== 'ERR_UNKNOWN_FILE_EXTENSION') return message
  return 'this Node.js cannot load TypeScript; use 22.18 or newer, load tsx (NODE_OPTIONS="--import tsx"), or write .js'
}
