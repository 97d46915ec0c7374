import { Command } from 'commander'
import { failure, quote } from '../../core/errors.js'
import type { ShownKey } from '../../stores/redis/schema/show.js'
import { redisOptions, type StoreOptions, schemaOption, storeOption } from '../settings/open-store.js'
import { cleanText, writeLine } from '../terminal/clean-text.js'
import { EXIT } from '../terminal/exit.js'

export function redisCommand(command: Command): void {
  command.addCommand(showCommand())
}

function showCommand(): Command {
  return new Command('show')
    .description('print a key of the store in words')
    .argument('<key>', 'such as belfry:{0}:lock:mail, or lock:mail to look in all shards')
    .argument('[member]', 'a field of a hash, such as the number of a run')
    .addOption(storeOption)
    .addOption(schemaOption)
    .addHelpText(
      'after',
      `
It says what the key is for, and what its texts mean. Of many members it shows
the first. It changes nothing. The keys are listed in docs/redis.md.

Examples:
  belfry redis show lock:invoice:42 --store redis://localhost
  belfry redis show 'belfry:{0}:queue:0:job:mail' --store redis://localhost
  belfry redis show runs 0001763522623000123 --store redis://localhost`,
    )
    .action(show)
}

async function show(key: string, member: string | undefined, options: StoreOptions): Promise<void> {
  const { showKey } = await import('../../stores/redis/schema/show.js')
  const found = await showKey(redisOptions(options), key, member)
  if (found === undefined) {
    throw failure('OPTION_INVALID', `${quote(key)} is no key of a Redis store: docs/redis.md lists them`)
  }
  if (found.length === 0) {
    writeLine(process.stderr, `there is no key ${quote(key)} in this store`)
    process.exitCode = EXIT.failure
    return
  }
  writeLine(process.stdout, `${found.flatMap(linesOf).join('\n')}`)
}

function linesOf({ key, about, size, members }: ShownKey): string[] {
  const lines = members.map(({ name, value }) => {
    const said = value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)
    return [name, said].filter((part) => part !== undefined && part !== '').join('  ')
  })
  const rest = size > members.length ? [`… and ${size - members.length} more`] : []
  return [
    key,
    `  ${about}`,
    ...[...lines, ...rest].flatMap((line) => line.split('\n').map((each) => `    ${each}`)),
  ].map((line) => cleanText(line))
}
