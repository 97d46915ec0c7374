import type { Command } from 'commander'
import type { LeaseResource } from '../../client/index.js'
import { BelfryError, quote } from '../../core/errors.js'
import { holderName } from '../../core/locks/holder.js'
import { type Flags, withClient, withClientOptions } from '../operator/client-options.js'
import { firstOf, type Limited, pageSize, withLimit } from '../operator/list-limit.js'
import type { Column } from '../terminal/table.js'

export function locksCommand(command: Command): void {
  const list = command.command('ls', { isDefault: true }).description('list locks and their holders')
  withClientOptions(withLimit(list.argument('[prefix]', 'only names that begin with this')))
    .addHelpText(
      'after',
      `
Keys of exclusive runs are locks too; RUN shows the run.

Examples:
  belfry locks
  belfry locks invoice: -o json`,
    )
    .action(listLocks)
  const reset = command.command('reset').description('take a lock from its holders')
  withClientOptions(reset.argument('<name>', 'name of the lock'))
    .addHelpText(
      'after',
      `
A holder learns of it with its next renewal, and can no longer commit. A run
that held it as its key is fenced and runs again.

Examples:
  belfry locks reset invoice:42`,
    )
    .action(resetLock)
}

async function listLocks(prefix: string | undefined, flags: Flags & Limited): Promise<void> {
  await withClient(flags, async ({ client, out }) => {
    const { briefly } = await import('../terminal/human-time.js')
    const now = Date.now()
    const instances = await client.instances().then(
      ({ data }) => data,
      () => [],
    )
    const hosts = new Map(instances.map(({ id, host, pid }) => [id, `${host} pid ${pid}`]))
    const columns: readonly Column<LeaseResource>[] = [
      { title: 'name', cell: ({ name }) => name, least: 16 },
      { title: 'since', cell: ({ acquiredAt }) => briefly(Date.parse(acquiredAt), now) },
      { title: 'ends', cell: ({ expiresAt }) => briefly(Date.parse(expiresAt), now) },
      { title: 'token', cell: ({ token }) => String(token), right: true },
      { title: 'run', cell: ({ run = '' }) => run },
      { title: 'holder', cell: (lease) => holderCell(lease, hosts), least: 16 },
    ]
    const locks = client.locks.all({
      limit: pageSize(flags, 1_000),
      ...(prefix === undefined ? {} : { prefix }),
    })
    await out.list(firstOf(locks, flags, out), columns, 'no locks are held')
  })
}

/** The key of a run is held by the instance that executes the run. */
function holderCell({ holder, run, instance = '' }: LeaseResource, hosts: ReadonlyMap<string, string>): string {
  return run === undefined ? holderName(holder) : (hosts.get(instance) ?? instance)
}

async function resetLock(name: string, flags: Flags): Promise<void> {
  await withClient(flags, async ({ client, out }) => {
    const { reset } = await client.locks.reset(name)
    if (reset === 0) throw new BelfryError('LOCK_NOT_FOUND', `${quote(name)} is not held`)
    out.one({ name, reset }, () => [`${name}: taken from ${reset === 1 ? 'its holder' : `${reset} holders`}`])
  })
}
