#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { devCommand } from './dev.js'
import { exitCodeOf, printError } from './exit.js'
import { migrateCommand } from './migrate.js'
import { nextCommand } from './next.js'
import { serveCommand } from './serve.js'
import { tokenCommand } from './token.js'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

const program = new Command('belfry')
  .description('Distributed cron and exclusive jobs: every tick recorded exactly once.')
  .version(version)
  .addHelpText('after', '\nExit codes: 0 ok, 1 failure, 2 usage, 5 store unreachable\nDocs: docs/getting-started.md')

for (const command of [serveCommand(), devCommand(), migrateCommand(), nextCommand(), tokenCommand()]) {
  program.addCommand(command)
}
// Commands are made apart, so each is told to throw, to suggest, and to speak as the rest of us does.
for (const command of [program, ...program.commands, ...program.commands.flatMap(({ commands }) => commands)]) {
  command
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError('(--help shows examples)')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'belfry: ')) })
}

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) printError(error)
  process.exitCode = exitCodeOf(error)
}
