/**
 * One folder for all temporary files of a test run and its child processes. It is removed when the tests are over; a
 * killed run's folder is removed by the next run.
 */
import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const PREFIX = 'belfry-tests-'

export default function setup(): () => void {
  const outer = tmpdir()
  for (const name of readdirSync(outer)) {
    if (name.startsWith(PREFIX) && !isAlive(Number(name.slice(PREFIX.length)))) remove(join(outer, name))
  }
  const own = `${PREFIX}${process.pid}`
  // Another vitest project of this run has made the folder.
  if (basename(outer) === own) return () => {}
  const folder = join(outer, own)
  mkdirSync(folder, { recursive: true })
  // Servers run as other users, and must reach their data in this folder.
  chmodSync(folder, 0o755)
  process.env.TMPDIR = folder
  return () => {
    process.env.TMPDIR = outer
    remove(folder)
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
