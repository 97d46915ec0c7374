/** A temporary folder for the demo's file, removed when the process exits. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const NAME = /^belfry-dev-(\d+)-/

export function makeDemoFolder(): string {
  removeLeftovers()
  const folder = mkdtempSync(join(tmpdir(), `belfry-dev-${process.pid}-`))
  process.once('exit', () => remove(folder))
  return folder
}

/** Removes the folders of demos that were killed with SIGKILL. */
function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = NAME.exec(name) ?? []
    if (pid !== undefined && !isAlive(Number(pid))) remove(join(tmpdir(), name))
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // The folder belongs to another user, or another demo is removing it.
  }
}
