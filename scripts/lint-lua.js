// @ts-check
/**
 * Runs luacheck on every script of the Redis store, in the form that the server gets: with its includes and the code that
 * reads the server's clock. The language is Lua 5.1 with the globals of Redis. A warning fails the check. Installs luacheck
 * (Debian: lua-check) if it is missing.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { foundOrInstalled } from '../test/servers/apt-install.js'
import { findProgram } from '../test/servers/find-program.js'
import { textModules } from './text-modules.js'

const root = fileURLToPath(new URL('../', import.meta.url))
// The bundle of the scripts' modules lies in node_modules, so that Node finds the packages that they import.
const folder = mkdtempSync(join(root, 'node_modules/.lint-lua-'))
const GLOBALS = ['redis', 'cjson', 'KEYS', 'ARGV']

try {
  const files = (await composedScripts()).map(({ name, composed }) => {
    const file = join(folder, `${name.replaceAll('/', '.')}.lua`)
    writeFileSync(file, composed.server.text)
    return file
  })
  const luacheck = foundOrInstalled({
    what: 'luacheck is missing',
    package_: 'lua-check',
    find: () => findProgram('luacheck'),
  })
  const options = [
    '--std',
    'lua51',
    '--read-globals',
    ...GLOBALS,
    '--no-max-line-length',
    '--no-cache',
    '--no-color',
    '-q',
  ]
  const { status, stdout, stderr } = spawnSync(luacheck, [...options, '--', ...files], { encoding: 'utf8' })
  if (status !== 0) {
    console.error(`${stdout}${stderr}`.replaceAll(`${folder}/`, ''))
    process.exitCode = 1
  } else console.log(`luacheck: ${files.length} scripts, no warnings`)
} finally {
  rmSync(folder, { recursive: true })
}

/** @returns {Promise<readonly { name: string, composed: { server: { text: string } } }[]>} */
async function composedScripts() {
  const store = join(root, 'src/stores/redis')
  const modules = readdirSync(store, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /(?<!\.test)\.ts$/.test(file),
  )
  const entry = join(folder, 'entry.ts')
  const imports = modules.map((file) => `import '${join(store, file)}'`)
  writeFileSync(entry, [...imports, `export { scripts } from '${store}/connection/lua-script.ts'`, ''].join('\n'))
  const bundle = await rolldown({
    input: entry,
    platform: 'node',
    treeshake: false,
    external: (id) => !id.startsWith('.') && !id.startsWith('/') && !id.includes('@oxc-project/runtime'),
    resolve: { extensionAlias: { '.js': ['.ts'] } },
    plugins: [textModules()],
  })
  const file = join(folder, 'scripts.mjs')
  await bundle.write({ file, format: 'esm' })
  await bundle.close()
  return (await import(pathToFileURL(file).href)).scripts
}
