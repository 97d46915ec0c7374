import type { Command } from 'commander'
import type { MigrationReport } from '../../core/store.js'
import { type StoreOptions, schemaOption, storeOption, storePlace } from '../settings/open-store.js'

export function migrateCommand(command: Command): Command {
  return command
    .addOption(storeOption)
    .addOption(schemaOption)
    .option('--dry-run', 'print the SQL and change nothing', false)
    .addHelpText(
      'after',
      `
Any number of processes may do this at once: one does it, the others wait and
find it done.

Examples:
  belfry migrate --store postgres://app@db.example/app
  BELFRY_STORE=postgres://app@db.example/app belfry migrate --schema jobs
  belfry migrate --store belfry.db --dry-run`,
    )
    .action(migrate)
}

async function migrate({ dryRun, ...options }: StoreOptions & { readonly dryRun: boolean }): Promise<void> {
  const place = storePlace(options)
  const report = await place.migrate(dryRun)
  process.stdout.write(dryRun ? asScript(place.name, report) : `${place.name}: ${summary(report)}\n`)
}

function summary({ from, to, sql }: MigrationReport): string {
  if (sql === '') return `up to date (version ${to}), nothing to do`
  if (from === to) return `functions brought up to date (version ${to})`
  return from === 0 ? `created (version ${to})` : `migrated from version ${from} to ${to}`
}

/** What can be given to `psql` or `sqlite3` as it is. */
function asScript(name: string, { from, to, sql }: MigrationReport): string {
  if (sql === '') return `-- ${name}: up to date (version ${to}), nothing to do\n`
  return `-- ${name}: from version ${from} to ${to}. Nothing was changed.\nbegin;\n\n${sql}\ncommit;\n`
}
