// @ts-check
/** tmux, a terminal whose screen a test can read. */
import { foundOrInstalled } from './apt-install.js'
import { findProgram } from './find-program.js'

/** @returns {string} */
export function tmuxProgram() {
  return foundOrInstalled({
    what: 'there is no tmux for the tests: install tmux',
    package_: 'tmux',
    find: () => findProgram('tmux'),
  })
}
