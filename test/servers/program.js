// @ts-check
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/usr/bin']

/**
 * Where a program is on this machine. Servers are in folders that the path of a user who is not root does not have.
 * @param {string} name
 */
export function program(name) {
  return FOLDERS.map((folder) => join(folder, name)).find((file) => existsSync(file))
}
