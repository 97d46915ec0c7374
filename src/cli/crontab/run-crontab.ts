/** `belfry crontab`: runs the lines of a crontab as jobs and schedules until a signal. */
import { basename, resolve } from 'node:path'
import { located } from '../../api/located.js'
import { type Belfry, createBelfry } from '../../belfry.js'
import { failure } from '../../core/errors.js'
import { stderrLogger } from '../../core/logger.js'
import { checkName } from '../../core/names/names.js'
import { isEvery } from '../../time/cron/nicknames.js'
import { durationMs } from '../../time/duration.js'
import { timeline } from '../../time/timeline.js'
import type { CrontabFlags } from '../commands/crontab.js'
import { shutdownSignal } from '../serve/shutdown-signal.js'
import { settingSources } from '../settings/config-file.js'
import { readText } from '../settings/data-file.js'
import { storeLocation } from '../settings/open-store.js'
import { quietSqlite } from '../settings/quiet-sqlite.js'
import { storeSettings } from '../settings/serve-settings.js'
import { Supervisor } from '../supervisor/supervisor.js'
import { machineMs } from '../supervisor/supervisor-messages.js'
import { cleanLine, writeLine } from '../terminal/clean-text.js'
import { relative, wallClock } from '../terminal/human-time.js'
import { quotePath } from '../terminal/quote-path.js'
import { styleFor } from '../terminal/style.js'
import { lineJob } from './line-job.js'
import { lineProgram } from './line-program.js'
import { type CrontabLine, parseCrontab } from './parse-crontab.js'

const style = styleFor(process.stderr)

export async function runCrontab(file: string, flags: CrontabFlags): Promise<void> {
  const { lines, notes } = readCrontab(file, flags)
  if (file === '-' && flags.name === undefined && !flags.check) {
    throw failure('OPTION_INVALID', 'a crontab from standard input needs a name: give it one with --name')
  }
  const name = checkName(flags.name ?? basename(file), 'crontab name')
  for (const note of notes) say(note)
  if (flags.check) return showLines(lines)
  if (lines.length === 0) throw failure('OPTION_INVALID', `${quotePath(file)} has no lines to run`)
  // Throws if a line may not run as its user, before this host joins.
  const programs = lines.map(lineProgram)
  const shutdown = shutdownSignal()
  quietSqlite()
  const location = storeLocation(storeSettings(await settingSources(flags, 'own')))
  const leaseMs = leaseOf(flags)
  const belfry = createBelfry({
    ...{ store: await location.open(), app: `crontab/${name}`, logger: stderrLogger },
    ...{ concurrency: 1_000, lease: leaseMs, stopGrace: located('--grace', () => durationMs(flags.grace)) },
  })
  const supervisor = await Supervisor.start('ignore')
  for (const [at, line] of lines.entries()) {
    const program = programs[at]
    if (program !== undefined) declare(belfry, supervisor, name, line, program, flags)
  }
  const stopExtending = keepExtending(supervisor, leaseMs)
  try {
    await belfry.start()
    say(`${lines.length} lines of ${file} · ${location.name} · as ${belfry.instance}`)
    say(`${await shutdown.requested}: letting commands finish`)
    await belfry.stop()
    say('stopped')
  } catch (error) {
    // Open connections would keep the process alive.
    await belfry.stop({ grace: 0 })
    throw error
  } finally {
    stopExtending()
    supervisor.close()
  }
  shutdown.exit()
}

/** With a shorter lease, a busy moment of the machine would end commands. */
const LEAST_LEASE_MS = 1_000

function leaseOf({ lease }: CrontabFlags): number {
  const leaseMs = located('--lease', () => durationMs(lease))
  if (leaseMs >= LEAST_LEASE_MS) return leaseMs
  throw failure('OPTION_INVALID', `--lease: ${lease} is too short to renew in time: at least 1s`)
}

function readCrontab(file: string, { timezone: zone, tz = zone, systemFormat, userFormat }: CrontabFlags) {
  const path = resolve(file)
  const isSystem = path === '/etc/crontab' || path.startsWith('/etc/cron.d/')
  const timezone = tz ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  return parseCrontab(readText(file), { system: systemFormat ?? (!userFormat && isSystem), timezone })
}

/** Declares a job and a schedule, both named by the line's hash: a host only claims lines of its own file. */
function declare(
  belfry: Belfry,
  supervisor: Supervisor,
  name: string,
  line: CrontabLine,
  program: ReturnType<typeof lineProgram>,
  flags: CrontabFlags,
): void {
  const { overlap, missed, timeout } = flags
  const id = `crontab/${name}/${slugOf(line)}-${line.hash}`
  belfry.job(id, {
    retry: { attempts: 1 },
    timeout: located('--timeout', () => durationMs(timeout)),
    run: lineJob(belfry, supervisor, program, (message) => say(`${id}  ${message}`)),
  })
  belfry.schedule(id, {
    ...(isEvery(line.cron) ? { cron: line.cron } : { cron: line.cron, timezone: line.timezone }),
    ...{ job: id, payload: { line: line.hash }, overlap, missed },
    ...lateness(flags),
  })
}

/**
 * With --missed skip, no tick may run that fell due while no host of this crontab was live. Another process on the store, such
 * as a service, may have recorded such a tick as a run; its deadline then skips it. Queues have no deadline, because a run
 * that waits for an earlier one must not be skipped.
 */
function lateness(flags: CrontabFlags): { readonly deadline?: number } {
  if (flags.missed !== 'skip' || flags.overlap.startsWith('queue')) return {}
  return { deadline: Math.max(LATE_MS, 2 * leaseOf(flags)) }
}

const LATE_MS = 60_000

/** The command's first word without its path, so that people recognise the line in lists. */
function slugOf({ command }: CrontabLine): string {
  const [word = ''] = command.trim().split(/\s+/, 1)
  return (
    basename(word)
      .replaceAll(/[^A-Za-z0-9._-]/g, '')
      .slice(0, 40) || 'line'
  )
}

/**
 * The store declares an instance dead one lease after its last beat. This process moves the supervisor's deadline forward
 * every second. If this process is stopped, the supervisor ends its commands before another host runs them again.
 */
function keepExtending(supervisor: Supervisor, leaseMs: number): () => void {
  const everyMs = Math.min(1_000, leaseMs / 10)
  const forMs = leaseMs * 0.7 - everyMs
  const extend = () => supervisor.extend(machineMs() + forMs, forMs / 4)
  extend()
  const timer = setInterval(extend, everyMs)
  return () => clearInterval(timer)
}

function showLines(lines: readonly CrontabLine[]): void {
  const now = Date.now()
  for (const { number, cron, timezone, command, user, hash } of lines) {
    const line = timeline(isEvery(cron) ? { cron } : { cron, timezone }, now)
    const [next] = line.between(now, Number.POSITIVE_INFINITY, 1)
    const when = next === undefined ? 'never' : `${wallClock(next, timezone)}  (${relative(next, now, timezone)})`
    const who = user === undefined ? '' : `as ${user}: `
    writeLine(
      process.stdout,
      `line ${number}  ${hash}  ${line.describe()}\n  next ${when}\n  ${who}${cleanLine(command)}`,
    )
  }
}

function say(message: string): void {
  writeLine(process.stderr, `${style.dim(new Date().toISOString().slice(11, 19))}  ${cleanLine(message)}`)
}
