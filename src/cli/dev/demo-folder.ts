/** Where a demo keeps its file: a folder of its own, which goes when the process does. */
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

/** A process that was killed outright could not remove its own: the next one does. */
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
    // Somebody else's process is alive too.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // Somebody else's, or somebody else is at it.
  }
}
