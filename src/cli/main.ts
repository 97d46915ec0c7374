#!/usr/bin/env node
import { CommanderError } from 'commander'
import { program, withoutHelpFor } from './program.js'
import { EXIT, exitCodeOf, printError } from './terminal/exit.js'

// Commands that have to end in an orderly way listen themselves.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (process.stdout.listenerCount('error') > 1) return
  // Who has read enough closes the pipe. A disk that is full is another matter: what was asked for is lost.
  if (error.code === 'EPIPE') process.exit()
  process.stderr.write(`belfry: standard output cannot be written: ${error.message}\n`)
  process.exit(EXIT.failure)
})
// There is nowhere to say so.
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
