/** All commands with a short description. A command's file is loaded only when the command is used. */
import type { Command } from 'commander'

export interface CommandEntry {
  readonly name: string
  readonly description: string
  /** Loads the function that adds the command's arguments, options, examples and action. */
  readonly load: () => Promise<(command: Command) => unknown>
}

export interface CommandGroup {
  readonly title: string
  readonly entries: readonly CommandEntry[]
}

const entry = (name: string, description: string, load: CommandEntry['load']): CommandEntry => ({
  name,
  description,
  load,
})

export const GROUPS: readonly CommandGroup[] = [
  {
    title: 'Schedules:',
    entries: [
      entry('ls', 'list schedules', async () => (await import('./commands/ls.js')).lsCommand),
      entry('get', 'show one schedule', async () => (await import('./commands/get.js')).getCommand),
      entry('put', 'create or replace a schedule', async () => (await import('./commands/put.js')).putCommand),
      entry('rm', 'remove schedules', async () => (await import('./commands/rm.js')).rmCommand),
      entry('pause', 'pause schedules', async () => (await import('./commands/pause.js')).pauseCommand),
      entry('resume', 'resume paused schedules', async () => (await import('./commands/resume.js')).resumeCommand),
      entry('trigger', 'run a schedule now', async () => (await import('./commands/trigger.js')).triggerCommand),
      entry(
        'backfill',
        'run the ticks of a past range',
        async () => (await import('./commands/backfill.js')).backfillCommand,
      ),
      entry(
        'explain',
        'explain why a tick ran, or did not',
        async () => (await import('./commands/explain.js')).explainCommand,
      ),
      entry(
        'next',
        'show the next ticks of an expression',
        async () => (await import('./commands/next.js')).nextCommand,
      ),
      entry('apply', 'apply a file of schedules', async () => (await import('./commands/apply.js')).applyCommand),
      entry(
        'import',
        'import schedules from lines of JSON',
        async () => (await import('./commands/import.js')).importCommand,
      ),
      entry(
        'export',
        'export schedules as lines of JSON',
        async () => (await import('./commands/export.js')).exportCommand,
      ),
    ],
  },
  {
    title: 'Runs:',
    entries: [
      entry(
        'enqueue',
        'enqueue a run of a job or sink',
        async () => (await import('./commands/enqueue.js')).enqueueCommand,
      ),
      entry('runs', 'list runs, or follow them live', async () => (await import('./commands/runs.js')).runsCommand),
      entry('run', 'show one run and its log', async () => (await import('./commands/run.js')).runCommand),
      entry('retry', 'retry failed runs', async () => (await import('./commands/retry.js')).retryCommand),
      entry('cancel', 'cancel runs', async () => (await import('./commands/cancel.js')).cancelCommand),
      entry('jobs', 'list jobs and their instances', async () => (await import('./commands/jobs.js')).jobsCommand),
    ],
  },
  {
    title: 'Locks:',
    entries: [
      entry('locks', 'list locks, or reset one', async () => (await import('./commands/locks.js')).locksCommand),
      entry('lock', 'run a program under a lock', async () => (await import('./commands/lock.js')).lockCommand),
    ],
  },
  {
    title: 'Operating:',
    entries: [
      entry(
        'doctor',
        'find problems, and how to fix them',
        async () => (await import('./commands/doctor.js')).doctorCommand,
      ),
      entry(
        'stats',
        'show numbers of instances and runs',
        async () => (await import('./commands/stats.js')).statsCommand,
      ),
      entry('instances', 'list instances', async () => (await import('./commands/instances.js')).instancesCommand),
      entry('audit', 'show who changed what', async () => (await import('./commands/audit.js')).auditCommand),
      entry('redis', 'print keys of a Redis store', async () => (await import('./commands/redis.js')).redisCommand),
      entry('freeze', 'stop all runs from starting', async () => (await import('./commands/freeze.js')).freezeCommand),
      entry('thaw', 'let runs start again', async () => (await import('./commands/thaw.js')).thawCommand),
    ],
  },
  {
    title: 'Running:',
    entries: [
      entry(
        'serve',
        'run the service: API, ticks and runs',
        async () => (await import('./commands/serve.js')).serveCommand,
      ),
      entry(
        'crontab',
        'run a crontab once across hosts',
        async () => (await import('./commands/crontab.js')).crontabCommand,
      ),
      entry('dev', 'run demo schedules and watch them', async () => (await import('./commands/dev.js')).devCommand),
      entry(
        'migrate',
        'create or update the tables',
        async () => (await import('./commands/migrate.js')).migrateCommand,
      ),
      entry('token', 'create and revoke API tokens', async () => (await import('./commands/token.js')).tokenCommand),
      entry(
        'webhook-secret',
        'print what a receiver of webhooks verifies with',
        async () => (await import('./commands/webhook-secret.js')).webhookSecretCommand,
      ),
      entry(
        'completion',
        'print a completion script for a shell',
        async () => (await import('./commands/completion.js')).completionCommand,
      ),
    ],
  },
]

export const ENTRIES: readonly CommandEntry[] = GROUPS.flatMap(({ entries }) => entries)
