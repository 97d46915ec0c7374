/** Turns a crontab line into a program with the line's shell, user and environment. It inherits no variable of this process. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { failure, quote } from '../../core/errors.js'
import type { Program } from '../supervisor/supervisor-messages.js'
import type { CrontabLine } from './parse-crontab.js'

interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
}

/** Throws if this process has no permission to run the line. */
export function lineProgram(line: CrontabLine): (runEnv: Readonly<Record<string, string>>) => Program {
  const self = ownAccount()
  const account = line.user === undefined || line.user === self.name ? self : otherAccount(line.user, line.number, self)
  const env = {
    HOME: account.home,
    LOGNAME: account.name,
    USER: account.name,
    SHELL: '/bin/sh',
    PATH: '/usr/bin:/bin',
    ...line.env,
  }
  return (runEnv) => ({
    // The home directory of system users, such as `nobody`, may not exist.
    ...{ file: env.SHELL, args: ['-c', line.command], cwd: existsSync(env.HOME) ? env.HOME : '/', capture: true },
    // Node passes standard input as a socket. bash takes a socket for a remote login and runs .bashrc, unless SHLVL is set.
    ...(line.stdin === undefined
      ? { env: { ...env, ...runEnv } }
      : { env: { SHLVL: '1', ...env, ...runEnv }, stdin: line.stdin }),
    ...(account.uid === self.uid ? {} : { uid: account.uid, gid: account.gid }),
  })
}

function ownAccount(): Account {
  const { username, uid, gid, homedir } = userInfo()
  return { name: username, uid, gid, home: homedir || '/' }
}

function otherAccount(name: string, line: number, self: Account): Account {
  const entry = passwd(name)
  const [, , uid, gid, , home] = entry?.split(':') ?? []
  if (uid === undefined || gid === undefined) {
    throw failure('OPTION_INVALID', `line ${line} of the crontab: there is no user ${quote(name)} on this host`)
  }
  if (self.uid !== 0 && self.uid !== Number(uid)) {
    throw failure(
      'OPTION_INVALID',
      `line ${line} of the crontab runs as ${quote(name)}, and this process is ${quote(self.name)}: start it as root`,
    )
  }
  return { name, uid: Number(uid), gid: Number(gid), home: home || '/' }
}

function passwd(name: string): string | undefined {
  try {
    return execFileSync('getent', ['passwd', '--', name], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return undefined
  }
}
