#!/usr/bin/env node
import { CommanderError } from 'commander'
import { program, withoutHelpFor } from './program.js'
import { EXIT, exitCodeOf, printError } from './terminal/exit.js'

// The default handler. A command that must clean up first adds its own listener, which replaces this one.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (process.stdout.listenerCount('error') > 1) return
  // A reader such as head closes the pipe: no error. A full disk loses output: an error.
  if (error.code === 'EPIPE') process.exit()
  process.stderr.write(`belfry: standard output cannot be written: ${error.message}\n`)
  process.exit(EXIT.failure)
})
// A failure of standard error cannot be reported anywhere.
process.stderr.on('error', () => {})

const words = withoutHelpFor(process.argv.slice(2))
// `belfry help ls` names its command second.
const named = words.slice(0, 2).filter((word) => !word.startsWith('-'))

try {
  await (await program(named)).parseAsync(words, { from: 'user' })
} catch (error) {
  if (!(error instanceof CommanderError)) printError(error)
  process.exitCode = exitCodeOf(error)
}
