/**
 * Makes one file of `belfry next` and what it loads. It is asked dozens of times a day, and most of its time went into
 * finding and reading thirty modules. Errors stay outside: who catches one must know its class.
 */
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const file = fileURLToPath(new URL('../dist/cli/commands/next.js', import.meta.url))
const inside = [
  /\/dist\/time\/(?!error\.js$)/,
  /\/dist\/cli\/(commands\/next|settings\/(config-file|settings-given-to)|terminal\/(human-time|style|quote-path)|operator\/on-operator)\.js$/,
  /\/cronstrue\//,
]

const bundle = await rolldown({
  input: file,
  platform: 'node',
  // Asked twice of each: by the name that is imported, and by the file that it was found to be.
  external: (id, _importer, isFile) =>
    (isFile || !/^(\.|cronstrue\/)/.test(id)) && !inside.some((path) => path.test(id)),
})
await bundle.write({ file, format: 'esm', sourcemap: true, codeSplitting: false })
await bundle.close()
