// @ts-check
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/usr/bin']

/**
 * The path of a program. Also looks in the folders of servers, which the PATH of ordinary users lacks.
 * @param {string} name
 */
export function findProgram(name) {
  return FOLDERS.map((folder) => join(folder, name)).find((file) => existsSync(file))
}
