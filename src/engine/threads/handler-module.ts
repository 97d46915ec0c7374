import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { errorRecord, failure } from '../../core/errors.js'
import type { ThreadContext } from '../definitions.js'

export type ThreadHandler = (context: ThreadContext<unknown>) => unknown

/** The handlers that this thread has loaded, by URL. */
const handlers = new Map<string, ThreadHandler>()

/** Loads a handler, the default export of a module, once in each thread. */
export async function handlerOf(module: string): Promise<ThreadHandler> {
  const handler = handlers.get(module) ?? (await loadHandler(module))
  handlers.set(module, handler)
  return handler
}

async function loadHandler(module: string): Promise<ThreadHandler> {
  const file = fileURLToPath(module)
  const loaded = await importModule(module, file)
  const handler = defaultOf(loaded)
  if (typeof handler === 'function') return handler as ThreadHandler
  throw failure(
    'HANDLER_INVALID',
    `${file} has no handler: ${foundIn(loaded, handler)}; write "export default async function (context) { … }"`,
  )
}

/** Describes a wrong export. A CommonJS module's default export is the object of its exports. */
function foundIn(loaded: Exports, value: unknown): string {
  if (value !== undefined && typeof value !== 'object') return `its default export is of type ${typeof value}`
  const names = [...new Set([...Object.keys(loaded), ...Object.keys(value ?? {})])]
  const others = names.filter((name) => name !== 'default' && name !== 'module.exports')
  return others.length === 0 ? 'it exports nothing' : `it exports ${others.slice(0, 5).join(', ')}`
}

type Exports = Readonly<Record<string, unknown>>

/** A CommonJS module that was compiled from an ES module has its default export one level deeper. */
function defaultOf({ default: value }: Exports): unknown {
  if (typeof value !== 'object' || value === null || !('__esModule' in value)) return value
  return (value as Exports).default
}

async function importModule(module: string, file: string): Promise<Exports> {
  try {
    return (await import(module)) as Exports
  } catch (error) {
    const { message, code } = errorRecord(error)
    throw failure('HANDLER_INVALID', `${file} cannot be loaded: ${message}; ${fixFor(code, file)}`, { cause: error })
  }
}

const SOURCE_OF = /\.([cm]?)js$/
const OTHER_WAYS = 'or see "Modules" in docs/cpu-bound-jobs.md'

function fixFor(code: string | undefined, file: string): string {
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION') {
    return `this Node.js reads no TypeScript in threads: compile it and name the .js file, use Node.js 22.18 or newer, ${OTHER_WAYS}`
  }
  if (existsSync(file)) return 'the error is in this module or in what it imports'
  const source = file.replace(SOURCE_OF, '.$1ts')
  if (source !== file && existsSync(source)) return `there is ${source}: compile it, ${OTHER_WAYS}`
  return 'there is no such file: check the path in new URL(…, import.meta.url), and where a bundler has put the module'
}
