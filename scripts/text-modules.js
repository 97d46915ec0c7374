// @ts-check
/**
 * SQL and Lua as modules: `import text from './claim.sql'` imports the text of the file. The build and the tests both
 * use this plugin, so nothing reads a file at run time and bundlers need no configuration for it.
 *
 * A Lua script includes another file of its store by a comment on a line of its own:
 *
 *     -- include: runs/transitions
 *
 * In `stores/redis/` this line becomes the text of `stores/redis/runs/transitions.lua`; SQL files work alike. A file that
 * is included twice, directly or indirectly, appears once, where it is first needed.
 */
import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'

const TEXT = /\.(?:sql|lua)$/
const INCLUDE = /^-- include: (\S+)$/gm
const STORE = /^.*\/stores\/[^/]+(?=\/)/

/** @returns {{ name: string, load(id: string): { code: string, moduleType: 'js' } | undefined }} */
export function textModules() {
  return {
    name: 'text-modules',
    load(id) {
      const [file = ''] = id.split('?')
      if (!TEXT.test(file)) return undefined
      return { code: `export default ${JSON.stringify(textOf(file))}\n`, moduleType: 'js' }
    },
  }
}

/**
 * The text of a file with all its includes.
 * @param {string} file
 * @param {Set<string>} [included]
 * @returns {string}
 */
export function textOf(file, included = new Set([file])) {
  const text = readFileSync(file, 'utf8')
  return text.replace(INCLUDE, (_line, name) => {
    const store = STORE.exec(file.replaceAll('\\', '/'))
    if (store === null) throw new Error(`${file} includes ${name}, but only files below stores/ can include others`)
    const part = join(store[0], name + extname(file))
    if (included.has(part)) return ''
    included.add(part)
    return textOf(part, included).trimEnd()
  })
}
