import { userInfo } from 'node:os'

/** The caller of a command that works on a store directly. A user who can open the store is admin. */
export function localCaller() {
  return { name: `command line (${userName()})`, role: 'admin' } as const
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // The user id has no entry in the user database.
    return String(process.getuid?.() ?? 'unknown')
  }
}
