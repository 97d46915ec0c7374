// @ts-check
/** curl, as a client that is not Belfry's: found on this machine, or installed by apt. */
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
