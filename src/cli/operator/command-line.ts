import { userInfo } from 'node:os'

/** Whoever has the store is admin. Who changed something is written down. */
export function commandLine() {
  return { name: `command line (${userName()})`, role: 'admin' } as const
}

/** A user id without a name is a name too. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}
