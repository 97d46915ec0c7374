// @ts-check
/** tmux, a terminal that a test can look at: where it is on this machine, or where it is once apt has installed it. */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { foundOrInstalled } from './apt.js'

/** @returns {string} */
export function tmuxProgram() {
  return foundOrInstalled({
    what: 'there is no tmux for the tests: install tmux',
    package_: 'tmux',
    find: () =>
      (process.env.PATH ?? '')
        .split(delimiter)
        .map((folder) => join(folder, 'tmux'))
        .find((path) => existsSync(path)),
  })
}
