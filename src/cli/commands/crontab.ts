import type { Command } from 'commander'
import { DEFAULTS } from '../../core/defaults.js'
import { MISSED_POLICIES, type MissedPolicy, OVERLAPS, type Overlap } from '../../core/policies.js'
import { durationText } from '../../time/duration.js'

export interface CrontabFlags {
  readonly [flag: string]: unknown
  readonly name?: string
  readonly tz?: string
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
    .option('--name <text>', 'names it, the same on all hosts (the file’s name)')
    .option('--tz <zone>', 'where CRON_TZ says nothing (this host’s zone)')
    .option('--system-format', 'a user stands before each command')
    .option('--user-format', 'no user does')
    .addOption(
      command
        .createOption('--overlap <policy>', 'while a line still runs')
        .choices(OVERLAPS)
        .default(DEFAULTS.schedule.overlap),
    )
    .addOption(
      command
        .createOption('--missed <policy>', 'ticks while every host was down')
        .choices(MISSED_POLICIES)
        .default(CRONTAB.missed),
    )
    .option('--timeout <duration>', 'the longest a command may take', durationText(CRONTAB.timeoutMs))
    .option('--lease <duration>', 'after which a silent host is given up', durationText(DEFAULTS.instance.leaseMs))
    .option('--grace <duration>', 'for commands that run when this ends', durationText(CRONTAB.graceMs))
    .option('--check', 'only show what would run, and when')
    .optionsGroup('Where:')
    .option('--store <where>', 'postgres://…, redis://… or a file (belfry.db)')
    .option('--schema <name>', 'the Postgres schema, or what Redis keys begin with')
    .option('--config <file>', 'settings: JSON, YAML or code (belfry.config.*)')
    .addHelpText(
      'after',
      `
Start it on every host with the same file: each tick of each line runs on one
of them. If that host dies, another runs it again. /etc/crontab and /etc/cron.d
have the system's format, other files the users', unless a flag says otherwise.

Commands are never taken from the store: a run names its line by a hash, and a
host runs it only if its own file has that line. What a command writes is kept
with its run, up to 60 kB: belfry run ID shows it.

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
