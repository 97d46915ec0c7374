import { userInfo } from 'node:os'

/** The caller in the audit trail when a command works on a store directly. Who can open the store is admin. */
export function localCaller() {
  return { name: `command line (${userName()})`, role: 'admin' } as const
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A user id without an entry in the user database.
    return String(process.getuid?.() ?? 'unknown')
  }
}
