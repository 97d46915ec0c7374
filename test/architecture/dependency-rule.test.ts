import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../../src/', import.meta.url))

/** What each folder of `src/` may import, besides itself and packages. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  time: [],
  core: ['time'],
  engine: ['core', 'time'],
  stores: ['core', 'time'],
  sinks: ['core', 'time'],
  api: ['engine', 'core', 'time'],
  'belfry.ts': ['api', 'engine', 'core', 'time'],
  testing: ['index.ts', 'belfry.ts', 'api', 'engine', 'core', 'time', 'stores', 'sinks'],
  client: ['server'],
  server: ['belfry.ts', 'api', 'engine', 'core', 'time'],
  cli: ['client', 'server', 'belfry.ts', 'api', 'engine', 'core', 'time', 'stores', 'sinks'],
  'index.ts': ['belfry.ts', 'api', 'engine', 'core', 'time'],
}

/** Entries of these folders never import their siblings. */
const SEPARATE = ['stores', 'sinks']
/** Sinks share these: the message format, per-schedule overrides and their patterns, and broker connections. */
const SHARED = [
  'message',
  'overrides',
  'override-patterns',
  'broker-link',
  'required-package',
  'by-destination',
  'destinations',
].map((name) => `sinks/${name}.ts`)

interface Import {
  readonly file: string
  readonly target: string
}

function violation({ file, target }: Import): string | undefined {
  const [from = '', fromPart = ''] = roomOf(file)
  const [to = '', toPart = ''] = roomOf(target)
  const allowed = MAY_IMPORT[from]
  if (allowed === undefined) return `src/${file}: ${from} is not a room of the dependency rule`
  if (from === to) {
    const apart = SEPARATE.includes(from) && fromPart !== toPart && !SHARED.includes(target)
    return apart ? `src/${file} imports src/${target}: ${from} never import each other` : undefined
  }
  return allowed.includes(to) ? undefined : `src/${file} imports src/${target}: ${from} may not import ${to}`
}

function roomOf(file: string): string[] {
  return file.split('/')
}

function importsOf(file: string, text: string): Import[] {
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(
    ([, specifier]) => specifier as string,
  )
  return specifiers.map((specifier) => ({
    file,
    target: relative(SRC, resolve(SRC, dirname(file), specifier)).replace(/\.js$/, '.ts'),
  }))
}

function sourceFiles(): string[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
}

/** The client runs in browsers: it imports only types from the server, and nothing from Node. */
function clientViolations(file: string, text: string): string[] {
  const own = /^(?:import|export) (?!type )(?:\{[^}]*\} |\* (?:as \w+ )?|\w+ )?(?:from )?'(\.\.\/[^']+|[^.'][^']*)'/gm
  return [...text.matchAll(own)].map(([, target]) => `src/${file} imports ${target}: client imports types alone`)
}

describe('the dependency rule', () => {
  it('holds for every import of the source', () => {
    const imports = sourceFiles()
      .filter((file) => !file.endsWith('.test.ts'))
      .flatMap((file) => importsOf(file, readFileSync(join(SRC, file), 'utf8')))
    expect(imports.length).toBeGreaterThan(10)
    expect(imports.map(violation).filter(Boolean)).toEqual([])
  })

  it('lets the client import only types', () => {
    const files = sourceFiles().filter((file) => file.startsWith('client/'))
    expect(files.length).toBeGreaterThan(3)
    expect(files.flatMap((file) => clientViolations(file, readFileSync(join(SRC, file), 'utf8')))).toEqual([])
    expect(clientViolations('client/a.ts', "import { z } from 'zod'\nimport type { A } from '../server/a.js'")).toEqual(
      ['src/client/a.ts imports zod: client imports types alone'],
    )
    expect(clientViolations('client/a.ts', "import { a } from '../server/a.js'")).toHaveLength(1)
    expect(clientViolations('client/a.ts', "import {\n  a,\n} from 'node:fs'")).toHaveLength(1)
  })

  it('names the offending import', () => {
    expect(violation({ file: 'time/cron.ts', target: 'core/schedules/plan.ts' })).toBe(
      'src/time/cron.ts imports src/core/schedules/plan.ts: time may not import core',
    )
    expect(violation({ file: 'stores/redis/claim.ts', target: 'stores/memory/claim.ts' })).toBe(
      'src/stores/redis/claim.ts imports src/stores/memory/claim.ts: stores never import each other',
    )
    expect(importsOf('time/a.ts', "import { x } from '../core/schedules/plan.js'")).toEqual([
      { file: 'time/a.ts', target: 'core/schedules/plan.ts' },
    ])
  })
})
