/** `belfry crontab`, from its file to its end. */
import { basename, resolve } from 'node:path'
import { located } from '../../api/located.js'
import { type Belfry, createBelfry } from '../../belfry.js'
import { failure } from '../../core/errors.js'
import { stderrLogger } from '../../core/logger.js'
import { checkName } from '../../core/names.js'
import { durationMs } from '../../time/duration.js'
import { timeline } from '../../time/timeline.js'
import type { CrontabFlags } from '../commands/crontab.js'
import { Guard } from '../guard/guard.js'
import { machineMs } from '../guard/guard-messages.js'
import { ending } from '../serve/ending.js'
import { readText } from '../settings/data-file.js'
import { storePlace } from '../settings/open-store.js'
import { quietSqlite } from '../settings/quiet-sqlite.js'
import { storeSettings } from '../settings/serve-settings.js'
import { givenTo } from '../settings/settings-given-to.js'
import { cleanLine } from '../terminal/clean-text.js'
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
    throw failure('OPTION_INVALID', 'what comes by standard input has no name: give it one with --name')
  }
  const name = checkName(flags.name ?? basename(file), 'crontab name')
  for (const note of notes) say(note)
  if (flags.check) return showLines(lines)
  if (lines.length === 0) throw failure('OPTION_INVALID', `${quotePath(file)} has no lines to run`)
  // Whatever this host may not do is told before it takes part.
  const programs = lines.map(lineProgram)
  const end = ending()
  quietSqlite()
  const place = storePlace(storeSettings(await givenTo(flags)))
  const leaseMs = leaseOf(flags)
  const belfry = createBelfry({
    ...{ store: await place.open(), app: `crontab/${name}`, logger: stderrLogger },
    ...{ concurrency: 1_000, lease: leaseMs, stopGrace: located('--grace', () => durationMs(flags.grace)) },
  })
  const guard = await Guard.start('ignore')
  for (const [at, line] of lines.entries()) {
    const program = programs[at]
    if (program !== undefined) declare(belfry, guard, name, line, program, flags)
  }
  const stopTrust = keepTrust(guard, leaseMs)
  try {
    await belfry.start()
    say(`${lines.length} lines of ${file} · ${place.name} · as ${belfry.instance}`)
    say(`${await end.asked}: letting commands finish`)
    await belfry.stop()
    say('bye')
  } catch (error) {
    // Connections to a store that cannot be used would keep the process from ending.
    await belfry.stop({ grace: 0 })
    throw error
  } finally {
    stopTrust()
    guard.close()
  }
  end.over()
}

/** Shorter ones end commands whenever the machine is busy for a moment. */
const LEAST_LEASE_MS = 1_000

function leaseOf({ lease }: CrontabFlags): number {
  const leaseMs = located('--lease', () => durationMs(lease))
  if (leaseMs >= LEAST_LEASE_MS) return leaseMs
  throw failure('OPTION_INVALID', `--lease: ${lease} is too short to be kept up: at least 1s`)
}

function readCrontab(file: string, { tz, systemFormat, userFormat }: CrontabFlags) {
  const path = resolve(file)
  const isSystem = path === '/etc/crontab' || path.startsWith('/etc/cron.d/')
  const timezone = tz ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  return parseCrontab(readText(file), { system: systemFormat ?? (!userFormat && isSystem), timezone })
}

/** A job and a schedule for each line, both named by its hash: a host claims only what its own file has. */
function declare(
  belfry: Belfry,
  guard: Guard,
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
    run: lineJob(belfry, guard, program, (words) => say(`${id}  ${words}`)),
  })
  belfry.schedule(id, {
    ...(line.cron.startsWith('@every') ? { cron: line.cron } : { cron: line.cron, timezone: line.timezone }),
    ...{ job: id, payload: { line: line.hash }, overlap, missed },
    ...lateness(flags),
  })
}

/**
 * Others on the store, such as a service, record ticks while no host of this crontab is there: those are missed too. One
 * that waits for an earlier run is not late.
 */
function lateness(flags: CrontabFlags): { readonly deadline?: number } {
  if (flags.missed !== 'skip' || flags.overlap.startsWith('queue')) return {}
  return { deadline: Math.max(LATE_MS, 2 * leaseOf(flags)) }
}

const LATE_MS = 60_000

/** The first word of the command, without its path: so that people know the line by its name too. */
function slugOf({ command }: CrontabLine): string {
  const [word = ''] = command.trim().split(/\s+/, 1)
  return (
    basename(word)
      .replaceAll(/[^A-Za-z0-9._-]/g, '')
      .slice(0, 40) || 'line'
  )
}

/**
 * The store gives a process up a lease after its last beat. While this one is well it says so every second; if it is
 * stopped, its commands are ended before another host runs them again.
 */
function keepTrust(guard: Guard, leaseMs: number): () => void {
  const everyMs = Math.min(1_000, leaseMs / 10)
  const forMs = leaseMs * 0.7 - everyMs
  const trust = () => guard.trust(machineMs() + forMs, forMs / 4)
  trust()
  const timer = setInterval(trust, everyMs)
  return () => clearInterval(timer)
}

function showLines(lines: readonly CrontabLine[]): void {
  const now = Date.now()
  for (const { number, cron, timezone, command, user, hash } of lines) {
    const line = timeline(cron.startsWith('@every') ? { cron } : { cron, timezone }, now)
    const [next] = line.between(now, Number.POSITIVE_INFINITY, 1)
    const when = next === undefined ? 'never' : `${wallClock(next, timezone)}  (${relative(next, now, timezone)})`
    const who = user === undefined ? '' : `as ${user}: `
    process.stdout.write(`line ${number}  ${hash}  ${line.describe()}\n  next ${when}\n  ${who}${cleanLine(command)}\n`)
  }
}

function say(words: string): void {
  process.stderr.write(`${style.dim(new Date().toISOString().slice(11, 19))}  ${cleanLine(words)}\n`)
}
