/** Every command by its name, with what it does in a few words. Its file is loaded when it is asked for. */
import type { Command } from 'commander'

export interface CommandEntry {
  readonly name: string
  readonly description: string
  /** Gives it its arguments, options, examples and action. */
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
      entry('put', 'make or replace a schedule', async () => (await import('./commands/put.js')).putCommand),
      entry('rm', 'remove schedules', async () => (await import('./commands/rm.js')).rmCommand),
      entry('pause', 'stop schedules from firing', async () => (await import('./commands/pause.js')).pauseCommand),
      entry('resume', 'let schedules fire again', async () => (await import('./commands/resume.js')).resumeCommand),
      entry('trigger', 'run a schedule now', async () => (await import('./commands/trigger.js')).triggerCommand),
      entry('backfill', 'run past ticks again', async () => (await import('./commands/backfill.js')).backfillCommand),
      entry(
        'explain',
        'say why a tick fired, or did not',
        async () => (await import('./commands/explain.js')).explainCommand,
      ),
      entry('next', 'show when it fires next', async () => (await import('./commands/next.js')).nextCommand),
      entry(
        'apply',
        'make schedules be as a file says',
        async () => (await import('./commands/apply.js')).applyCommand,
      ),
      entry(
        'import',
        'take schedules from lines of JSON',
        async () => (await import('./commands/import.js')).importCommand,
      ),
      entry(
        'export',
        'write schedules as lines of JSON',
        async () => (await import('./commands/export.js')).exportCommand,
      ),
    ],
  },
  {
    title: 'Runs:',
    entries: [
      entry('runs', 'list runs, or follow them live', async () => (await import('./commands/runs.js')).runsCommand),
      entry('run', 'show one run and its log', async () => (await import('./commands/run.js')).runCommand),
      entry('retry', 'run what failed again', async () => (await import('./commands/retry.js')).retryCommand),
      entry('cancel', 'cancel runs', async () => (await import('./commands/cancel.js')).cancelCommand),
      entry('jobs', 'list jobs and who runs them', async () => (await import('./commands/jobs.js')).jobsCommand),
    ],
  },
  {
    title: 'Locks:',
    entries: [
      entry(
        'locks',
        'list locks, or take one from its holder',
        async () => (await import('./commands/locks.js')).locksCommand,
      ),
      entry('lock', 'run a program under a lock', async () => (await import('./commands/lock.js')).lockCommand),
    ],
  },
  {
    title: 'Looking after it:',
    entries: [
      entry(
        'doctor',
        'find what is wrong, and how to fix it',
        async () => (await import('./commands/doctor.js')).doctorCommand,
      ),
      entry('stats', 'show how things stand', async () => (await import('./commands/stats.js')).statsCommand),
      entry('instances', 'list who takes part', async () => (await import('./commands/instances.js')).instancesCommand),
      entry('audit', 'show who changed what', async () => (await import('./commands/audit.js')).auditCommand),
      entry('redis', 'print keys of a Redis store', async () => (await import('./commands/redis.js')).redisCommand),
      entry('freeze', 'keep all runs from starting', async () => (await import('./commands/freeze.js')).freezeCommand),
      entry('thaw', 'let runs start again', async () => (await import('./commands/thaw.js')).thawCommand),
    ],
  },
  {
    title: 'Running it:',
    entries: [
      entry(
        'serve',
        'serve the HTTP API, record and run',
        async () => (await import('./commands/serve.js')).serveCommand,
      ),
      entry(
        'crontab',
        'run a crontab once across hosts',
        async () => (await import('./commands/crontab.js')).crontabCommand,
      ),
      entry('dev', 'run demo schedules and watch them', async () => (await import('./commands/dev.js')).devCommand),
      entry('migrate', 'make or update the tables', async () => (await import('./commands/migrate.js')).migrateCommand),
      entry(
        'token',
        'make and revoke tokens of the API',
        async () => (await import('./commands/token.js')).tokenCommand,
      ),
      entry(
        'completion',
        'print a script for your shell',
        async () => (await import('./commands/completion.js')).completionCommand,
      ),
    ],
  },
]

export const ENTRIES: readonly CommandEntry[] = GROUPS.flatMap(({ entries }) => entries)
