// @ts-check
/**
 * Compiles `src/` to `dist/`, a module for a module, with SQL and Lua embedded. Types are checked and declared by tsc
 * afterwards: it cannot import texts.
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
  // What lowers `using` comes from rolldown itself, and is embedded.
  external: (id) => !id.startsWith('.') && !isAbsolute(id) && !id.includes('@oxc-project/runtime'),
  resolve: { extensionAlias: { '.js': ['.ts'] } },
  transform: { target: 'es2023' },
  plugins: [textModules()],
})
await bundle.write({
  dir: `${root}dist`,
  format: 'esm',
  sourcemap: true,
  preserveModules: true,
  preserveModulesRoot: 'src',
  // As a function: the pattern drops the ending of a text, so that claim.sql and claim.ts would collide.
  entryFileNames: ({ name }) => `${name}.js`,
})
await bundle.close()
