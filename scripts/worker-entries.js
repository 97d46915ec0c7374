// @ts-check
/**
 * Lets tests start worker threads from the sources. A thread loads plain JavaScript, but the sources are TypeScript. When
 * a test loads a module that calls `startThread(new URL('./x.js', import.meta.url), …)`, this plugin bundles `x.ts` into
 * JavaScript and replaces the URL. The build does not need the plugin, because `dist/` has `x.js` beside the caller.
 */
import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { textModules } from './text-modules.js'

const START = /(?<=(?:new Worker|startThread)\(\s*)new URL\('(\.[^']*)\.js', import\.meta\.url\)/

/** @returns {import('vite').Plugin} */
export function workerEntries() {
  return {
    name: 'worker-entries',
    enforce: 'pre',
    async transform(code, id) {
      const path = START.exec(code)?.[1]
      if (path === undefined || !id.includes('/src/')) return undefined
      const file = await bundled(resolve(dirname(id), `${path}.ts`))
      return { code: code.replace(START, `new URL('${pathToFileURL(file).href}')`), map: null }
    },
  }
}

/** @param {string} input */
async function bundled(input) {
  const bundle = await rolldown({
    input,
    platform: 'node',
    external: (id) => !id.startsWith('.') && !id.startsWith('/') && !id.includes('@oxc-project/runtime'),
    resolve: { extensionAlias: { '.js': ['.ts'] } },
    transform: { target: 'es2023' },
    plugins: [textModules()],
  })
  const hash = createHash('sha256').update(input).digest('hex').slice(0, 16)
  const file = join(tmpdir(), `worker-entry-${hash}.mjs`)
  await bundle.write({ file, format: 'esm', sourcemap: 'inline', codeSplitting: false })
  await bundle.close()
  return file
}
