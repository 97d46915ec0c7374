// @ts-check
/** curl, an HTTP client that is independent of Belfry. */
import { foundOrInstalled } from './apt-install.js'
import { findProgram } from './find-program.js'

/** @returns {string} */
export function curlProgram() {
  return foundOrInstalled({
    what: 'there is no curl for the tests: install curl',
    package_: 'curl',
    find: () => findProgram('curl'),
  })
}
