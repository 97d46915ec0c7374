/**
 * Bundles `belfry next` and its imports into one file. The command is called often, and most of its time went into
 * finding and reading thirty modules. The error class stays external, because `instanceof` needs a single class.
 */
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const file = fileURLToPath(new URL('../dist/cli/commands/next.js', import.meta.url))
const inside = [
  /\/dist\/time\/(?!error\.js$)/,
  /\/dist\/cli\/(commands\/next|settings\/config-file|terminal\/(clean-text|human-time|style|quote-path)|operator\/client-options)\.js$/,
  /\/cronstrue\//,
]

const bundle = await rolldown({
  input: file,
  platform: 'node',
  // rolldown calls this twice per import: with the imported name, and with the resolved file.
  external: (id, _importer, isFile) =>
    (isFile || !/^(\.|cronstrue\/)/.test(id)) && !inside.some((path) => path.test(id)),
})
await bundle.write({ file, format: 'esm', codeSplitting: false })
await bundle.close()
