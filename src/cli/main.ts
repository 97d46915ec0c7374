#!/usr/bin/env node
import { CommanderError } from 'commander'
import { exitCodeOf, printError } from './exit.js'
import { program } from './program.js'

// `belfry help ls` names its command second.
const named = process.argv.slice(2, 4).filter((word) => !word.startsWith('-'))

try {
  await (await program(named)).parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) printError(error)
  process.exitCode = exitCodeOf(error)
}
