/** A line of a crontab as a program to start: by its own shell, as its own user, and with none of our environment. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { failure, quote } from '../../core/errors.js'
import type { Program } from '../guard/guard-messages.js'
import type { CrontabLine } from './parse-crontab.js'

interface Person {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
}

/** Throws where this process may not do what the line says. */
export function lineProgram(line: CrontabLine): (of: Readonly<Record<string, string>>) => Program {
  const self = me()
  const person = line.user === undefined || line.user === self.name ? self : other(line.user, line.number, self)
  const env = {
    HOME: person.home,
    LOGNAME: person.name,
    USER: person.name,
    SHELL: '/bin/sh',
    PATH: '/usr/bin:/bin',
    ...line.env,
  }
  return (of) => ({
    // Users such as nobody have a home that is nowhere.
    ...{ file: env.SHELL, args: ['-c', line.command], cwd: existsSync(env.HOME) ? env.HOME : '/', capture: true },
    // What a command reads comes by a socket, and bash takes that for a login over the network unless it is a shell's shell.
    ...(line.stdin === undefined
      ? { env: { ...env, ...of } }
      : { env: { SHLVL: '1', ...env, ...of }, stdin: line.stdin }),
    ...(person.uid === self.uid ? {} : { uid: person.uid, gid: person.gid }),
  })
}

function me(): Person {
  const { username, uid, gid, homedir } = userInfo()
  return { name: username, uid, gid, home: homedir || '/' }
}

function other(name: string, line: number, self: Person): Person {
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
