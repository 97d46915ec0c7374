// @ts-check
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/usr/bin']

/**
 * The path of a program, also in folders of servers, which are missing in the PATH of ordinary users.
 * @param {string} name
 */
export function findProgram(name) {
  return FOLDERS.map((folder) => join(folder, name)).find((file) => existsSync(file))
}
