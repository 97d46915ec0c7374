import type { Command } from 'commander'
import type { MigrationReport } from '../../core/store.js'
import { type StoreOptions, schemaOption, storeLocation, storeOption } from '../settings/open-store.js'

export function migrateCommand(command: Command): Command {
  return command
    .addOption(storeOption)
    .addOption(schemaOption)
    .option('--dry-run', 'print the SQL and change nothing', false)
    .addHelpText(
      'after',
      `
Any number of processes may do this at once: one migrates, and the others wait.

Examples:
  belfry migrate --store postgres://app@db.example/app
  BELFRY_STORE=postgres://app@db.example/app belfry migrate --schema jobs
  belfry migrate --store belfry.db --dry-run`,
    )
    .action(migrate)
}

async function migrate({ dryRun, ...options }: StoreOptions & { readonly dryRun: boolean }): Promise<void> {
  const location = storeLocation(options)
  const report = await location.migrate(dryRun)
  process.stdout.write(dryRun ? asScript(location.name, report) : `${location.name}: ${summary(report)}\n`)
}

function summary({ from, to, sql }: MigrationReport): string {
  if (sql === '') return `up to date (version ${to}), nothing to do`
  if (from === to) return `functions brought up to date (version ${to})`
  return from === 0 ? `created (version ${to})` : `migrated from version ${from} to ${to}`
}

/** A script for `psql` or `sqlite3`. */
function asScript(name: string, { from, to, sql }: MigrationReport): string {
  if (sql === '') return `-- ${name}: up to date (version ${to}), nothing to do\n`
  return `-- ${name}: from version ${from} to ${to}. Nothing was changed.\nbegin;\n\n${sql}\ncommit;\n`
}
