// @ts-check
/** curl, which nobody here wrote: where it is on this machine, or where it is once apt has installed it. */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { foundOrInstalled } from './apt.js'

/** @returns {string} */
export function curlProgram() {
  return foundOrInstalled({
    what: 'there is no curl for the tests: install curl',
    package_: 'curl',
    find: () =>
      (process.env.PATH ?? '')
        .split(delimiter)
        .map((folder) => join(folder, 'curl'))
        .find((path) => existsSync(path)),
  })
}
