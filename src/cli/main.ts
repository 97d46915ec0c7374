#!/usr/bin/env node
import { CommanderError } from 'commander'
import { exitCodeOf, printError } from './exit.js'
import { program } from './program.js'

// Who has read enough closes the pipe. Commands that have to end in an orderly way listen themselves.
process.stdout.on('error', () => {
  if (process.stdout.listenerCount('error') === 1) process.exit()
})

// `belfry help ls` names its command second.
const named = process.argv.slice(2, 4).filter((word) => !word.startsWith('-'))

try {
  await (await program(named)).parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) printError(error)
  process.exitCode = exitCodeOf(error)
}
