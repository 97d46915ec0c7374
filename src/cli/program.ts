/** The command line. Only the requested commands are loaded. */
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { ENTRIES, GROUPS } from './command-list.js'
import { EXIT_CODES } from './terminal/exit.js'

/** Loads the named commands; all others have a name and a description only. */
export async function program(loaded: readonly string[]): Promise<Command> {
  const root = new Command('belfry')
    .description('Distributed cron and exclusive jobs: every tick recorded exactly once.')
    .version(version())
    .addHelpText('after', `\nExit codes: ${EXIT_CODES}\nDocs: docs/cli.md`)
  for (const { title, entries } of GROUPS) {
    root.commandsGroup(title)
    for (const { name, description } of entries) root.command(name).description(description)
  }
  root.helpCommand('help [command]', 'show the help of a command')
  for (const { name, load } of ENTRIES) {
    const command = loaded.includes(name) ? root.commands.find((each) => each.name() === name) : undefined
    if (command !== undefined) (await load())(command)
  }
  configure(root)
  return root
}

/** Turns `belfry help lss` into `belfry lss`, so that an unknown command gets the same error and suggestion. */
export function withoutHelpFor(words: readonly string[]): readonly string[] {
  const [first, name] = words
  const isKnown = name === undefined || name.startsWith('-') || ENTRIES.some((entry) => entry.name === name)
  return first === 'help' && !isKnown && name !== 'help' ? words.slice(1) : words
}

/** Makes commander throw its errors instead of exiting, suggest similar names, and begin messages with "belfry: ". */
function configure(command: Command): void {
  command
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError('(--help shows examples)')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'belfry: ')) })
  for (const sub of command.commands) configure(sub)
}

function version(): string {
  const { version: found } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return found
}
