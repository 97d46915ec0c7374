#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { devCommand } from './dev.js'
import { exitCodeOf, printError } from './exit.js'
import { migrateCommand } from './migrate.js'
import { nextCommand } from './next.js'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

const program = new Command('belfry')
  .description('Distributed cron and exclusive jobs: every tick recorded exactly once.')
  .version(version)
  .showSuggestionAfterError()
  .configureOutput({ outputError: (text, write) => write(text) })
  .addHelpText('after', '\nDocs: docs/getting-started.md · Exit codes: 0 ok, 1 failure, 2 usage, 5 store unreachable')

for (const command of [devCommand(), migrateCommand(), nextCommand()]) program.addCommand(command)
// Commands are made apart, so each is told to throw, and to suggest.
for (const command of [program, ...program.commands]) command.exitOverride().showSuggestionAfterError()

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) printError(error)
  process.exitCode = exitCodeOf(error)
}
