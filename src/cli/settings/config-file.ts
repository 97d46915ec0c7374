/**
 * The config file: --config or BELFRY_CONFIG, else `belfry.config.*` in the current folder. JSON and YAML hold data;
 * JavaScript and TypeScript export it as their default, and may create sinks in code.
 *
 * A file in the current folder may come from somebody else, for instance with a cloned repository. So code that was merely
 * found is run only for commands that serve, and only if the file belongs to the user; and `operator-settings.ts` sends no
 * token to a URL that was merely found. Each command says which file it found.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { errorRecord, failure } from '../../core/errors.js'
import { writeLine } from '../terminal/clean-text.js'
import { quotePath } from '../terminal/quote-path.js'
import type { SettingSources } from './config.js'

export interface ConfigFile {
  readonly path: string
  readonly values: Readonly<Record<string, unknown>>
  /** Whether --config or BELFRY_CONFIG names it. Any other file was found in the current folder, which may be anybody's. */
  readonly isNamed: boolean
}

/** Whether JavaScript or TypeScript that was found is run if it belongs to the user. A file that is named is always run. */
export type RunsCode = 'own' | 'never'

const NAMES = ['ts', 'mts', 'js', 'mjs', 'json', 'yaml', 'yml'].map((extension) => `belfry.config.${extension}`)
const CODE = ['.ts', '.mts', '.js', '.mjs']

/** Resolves to undefined when there is no config file. Refuses a folder that has two, as ambiguous. */
export async function configFile(
  flags: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
  runsCode: RunsCode,
  folder = process.cwd(),
): Promise<ConfigFile | undefined> {
  const named = flags.config ?? env.BELFRY_CONFIG
  if (typeof named === 'string' && named !== '') return read(resolve(folder, named), named, true)
  const found = NAMES.filter((name) => existsSync(resolve(folder, name)))
  if (found.length > 1) {
    throw failure('OPTION_INVALID', `there are ${found.join(' and ')}: keep one of them, or name it with --config`)
  }
  const [name] = found
  if (name === undefined) return undefined
  const file = resolve(folder, name)
  if (CODE.includes(extname(file))) {
    if (runsCode === 'never') {
      note(`${name} in this folder is not run: to use it, name it with --config ${name}`)
      return undefined
    }
    mustBeOwn(file, name)
  }
  note(`settings from ${name} in this folder`)
  return read(file, name, false)
}

function note(text: string): void {
  writeLine(process.stderr, `belfry: ${text}`)
}

/** Throws unless the file belongs to the user, and others cannot write it. */
function mustBeOwn(file: string, name: string): void {
  const { uid, mode } = statSync(file)
  const user = process.getuid?.()
  if (user === undefined || (uid === user && (mode & 0o002) === 0)) return
  throw failure(
    'OPTION_INVALID',
    `${name} in this folder is not run, because it ${uid === user ? 'can be written by every user' : 'belongs to another user'}: to run it, name it with --config ${name}`,
  )
}

/** The flags, the environment and the config file of a command. */
export async function settingSources(
  flags: SettingSources['flags'],
  runsCode: RunsCode = 'never',
): Promise<SettingSources & { readonly file: ConfigFile | undefined }> {
  return { flags, env: process.env, file: await configFile(flags, process.env, runsCode) }
}

async function read(file: string, path: string, isNamed: boolean): Promise<ConfigFile> {
  const values = await load(file, path)
  if (typeof values === 'object' && values !== null && !Array.isArray(values)) {
    return { path, values: values as Readonly<Record<string, unknown>>, isNamed }
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
