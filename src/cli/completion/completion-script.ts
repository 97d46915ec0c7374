/** Shell completion scripts, generated from the command line's own definitions. */
import type { Command } from 'commander'
import { ENTRIES } from '../command-list.js'
import { program } from '../program.js'
import { bashScript } from './bash.js'
import { fishScript } from './fish.js'
import { zshScript } from './zsh.js'

export interface Word {
  readonly text: string
  readonly about: string
}

export interface OptionWord extends Word {
  /** The short form, such as `-o`. */
  readonly short?: string
  readonly takesValue: boolean
  readonly choices: readonly string[]
}

/** A command with the words that may follow it. */
export interface CommandNode {
  /** Without the program's name, such as `token create`; empty for the program itself. */
  readonly path: string
  readonly commands: readonly Word[]
  readonly options: readonly OptionWord[]
  readonly choices: readonly string[]
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }

export async function completionScript(shell: keyof typeof SCRIPTS): Promise<string> {
  const root = await program(ENTRIES.map(({ name }) => name))
  return SCRIPTS[shell](nodesOf(root, ''))
}

function nodesOf(command: Command, path: string): CommandNode[] {
  const own: CommandNode = {
    path,
    commands: command.commands.map((each) => ({ text: each.name(), about: each.description() })),
    options: [
      ...command.options.map(({ long, short, description, required, optional, argChoices }) => ({
        text: long ?? '',
        ...(short === undefined ? {} : { short }),
        about: description,
        takesValue: required || optional,
        choices: argChoices ?? (long === '--output' ? ['table', 'json', 'jsonl'] : []),
      })),
      { text: '--help', short: '-h', about: 'show help', takesValue: false, choices: [] },
    ],
    choices: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
  }
  return [own, ...command.commands.flatMap((each) => nodesOf(each, `${path} ${each.name()}`.trim()))]
}
