import type { Command } from 'commander'
import { DEFAULTS } from '../../core/defaults.js'
import { MISSED_POLICIES, type MissedPolicy, OVERLAPS, type Overlap } from '../../core/policies.js'
import { durationText } from '../../time/duration.js'

export interface CrontabFlags {
  readonly [flag: string]: unknown
  readonly name?: string
  readonly tz?: string
  readonly timezone?: string
  readonly systemFormat?: boolean
  readonly userFormat?: boolean
  readonly overlap: Overlap
  readonly missed: MissedPolicy
  readonly timeout: string
  readonly lease: string
  readonly grace: string
  readonly check?: boolean
}

const CRONTAB = DEFAULTS.crontab

export function crontabCommand(command: Command): void {
  command
    .argument('<file>', 'an ordinary crontab')
    .option('--name <text>', 'name of the crontab, the same on all hosts (file name)')
    .option('--tz <zone>', 'time zone without CRON_TZ (this host’s zone)')
    .addOption(command.createOption('--timezone <zone>', 'the same as --tz').hideHelp())
    .option('--system-format', 'each command has a user before it')
    .option('--user-format', 'commands have no user before them')
    .addOption(
      command
        .createOption('--overlap <policy>', 'while a line still runs')
        .choices(OVERLAPS)
        .default(DEFAULTS.schedule.overlap),
    )
    .addOption(
      command
        .createOption('--missed <policy>', 'ticks while no host was live')
        .choices(MISSED_POLICIES)
        .default(CRONTAB.missed),
    )
    .option('--timeout <duration>', 'longest run time of a command', durationText(CRONTAB.timeoutMs))
    .option(
      '--lease <duration>',
      'a host is dead after this long without a beat',
      durationText(DEFAULTS.instance.leaseMs),
    )
    .option('--grace <duration>', 'time for running commands at the end', durationText(CRONTAB.graceMs))
    .option('--check', 'only show what would run, and when')
    .optionsGroup('Where:')
    .option('--store <where>', 'postgres://…, redis://… or a file (belfry.db)')
    .option('--schema <name>', 'the Postgres schema, or the prefix of Redis keys')
    .option('--config <file>', 'settings: JSON, YAML or code (belfry.config.*)')
    .addHelpText(
      'after',
      `
Start it on every host with the same file: each tick of each line runs on one
of them. If that host dies, another runs it again. /etc/crontab and /etc/cron.d
are read in the system format, other files in the user format, unless a flag
says otherwise.

Commands are never read from the store: a run names its line by a hash, and a
host runs it only if its own file has that line. The output of a command is
stored with its run, up to 60 kB: belfry run ID shows it.

Examples:
  belfry crontab /etc/crontab --store postgres://app@db.example/app
  belfry crontab jobs.cron --tz Europe/Berlin --overlap skip
  belfry crontab jobs.cron --check`,
    )
    .action(async (file: string, flags: CrontabFlags) => {
      const { runCrontab } = await import('../crontab/run-crontab.js')
      await runCrontab(file, flags)
    })
}
