// @ts-check
/**
 * Compiles `src/` to `dist/`, one output module per source module, with SQL and Lua embedded. tsc cannot import SQL and
 * Lua, so it only checks types and emits declarations afterwards.
 */
import { readdirSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { textModules } from './text-modules.js'

const root = fileURLToPath(new URL('../', import.meta.url))
const input = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
  .filter((file) => /(?<!\.test|\.d)\.ts$/.test(file))
  .map((file) => `${root}src/${file}`)

const bundle = await rolldown({
  input,
  platform: 'node',
  // The helper that lowers `using` comes from rolldown itself, and is embedded.
  external: (id) => !id.startsWith('.') && !isAbsolute(id) && !id.includes('@oxc-project/runtime'),
  resolve: { extensionAlias: { '.js': ['.ts'] } },
  transform: { target: 'es2023' },
  plugins: [textModules()],
})
await bundle.write({
  dir: `${root}dist`,
  format: 'esm',
  // The declarations have them.
  comments: { jsdoc: false },
  preserveModules: true,
  preserveModulesRoot: 'src',
  // A function instead of a pattern: the pattern drops a text's extension, so that claim.sql and claim.ts would
  // collide.
  entryFileNames: ({ name }) => `${name}.js`,
})
await bundle.close()
