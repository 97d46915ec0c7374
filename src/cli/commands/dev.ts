import { type Command, InvalidArgumentError } from 'commander'

export function devCommand(command: Command): Command {
  return command
    .option('--replicas <count>', 'run this many processes on one file; a number key kills one', replicasOf, 1)
    .addHelpText(
      'after',
      `
Examples:
  belfry dev                 one process, four schedules
  belfry dev --replicas 3    three processes to kill, by the keys 1, 2 and 3`,
    )
    .action(async ({ replicas }: { readonly replicas: number }) => {
      const { runDev } = await import('../dev/run-dev.js')
      await runDev(replicas)
    })
}

function replicasOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= 9) return count
  throw new InvalidArgumentError('It must be a whole number from 1 to 9.')
}
