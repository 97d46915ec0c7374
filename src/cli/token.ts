import { Command } from 'commander'
import { located } from '../api/located.js'
import { failure, quote } from '../core/errors.js'
import type { Store } from '../core/store.js'
import type { TokenInfo } from '../server/security/tokens.js'
import { durationMs } from '../time/duration.js'
import type { Format } from './terminal/output.js'

interface Flags {
  readonly store?: string
  readonly schema?: string
  readonly config?: string
}

const CLI = { name: 'command line', role: 'admin' } as const

export function tokenCommand(command: Command): void {
  for (const sub of [createCommand(), listCommand(), revokeCommand()]) command.addCommand(sub)
}

/** All of them work on a store, found as `belfry serve` finds it. */
function onStore(name: string): Command {
  return new Command(name)
    .option('--store <where>', 'postgres://…, redis://… or a file (belfry.db)')
    .option('--schema <name>', 'the Postgres schema, or what Redis keys begin with')
    .option('--config <file>', 'the config file of belfry serve')
}

function createCommand(): Command {
  return onStore('create')
    .description('make a token; it is printed once, and only its hash is kept')
    .requiredOption('--role <role>', 'viewer, operator or admin')
    .option('--prefix <text>', 'it sees and touches only ids that begin so')
    .option('--name <text>', 'who it is for')
    .option('--expires <duration>', 'how long it is good for, such as 90d')
    .addHelpText(
      'after',
      `
The token alone goes to standard output, everything else to standard error.

Examples:
  belfry token create --role admin --name ana
  belfry token create --role operator --prefix billing/ --expires 90d`,
    )
    .action(async ({ role, prefix, name, expires, ...flags }: Flags & Record<string, string | undefined>) => {
      const ttlMs = expires === undefined ? undefined : located('--expires', () => durationMs(expires))
      const { Tokens, checkRole } = await import('../server/security/tokens.js')
      const wanted = {
        role: checkRole(role),
        ...(prefix === undefined ? {} : { prefix }),
        ...(name === undefined ? {} : { name }),
        ...(ttlMs === undefined ? {} : { ttlMs }),
      }
      await withStore(flags, async (store) => {
        const { token, info } = await new Tokens(store.records).create(wanted)
        await record(store, 'token.create', info.id, { ...wanted })
        process.stderr.write(`token ${info.id}: ${inWords(info)}. It is shown this once:\n`)
        process.stdout.write(`${token}\n`)
      })
    })
}

function listCommand(): Command {
  return onStore('list')
    .description('show which tokens there are')
    .option('-o, --output <format>', 'table, json or jsonl')
    .action(async (flags: Flags & { readonly output?: string }) => {
      const { formatOf } = await import('./operator/operator-settings.js')
      const { givenTo } = await import('./operator/given-to.js')
      const format = formatOf(await givenTo({ ...flags }))
      await withStore(flags, async (store) => print(await allTokens(store), format))
    })
}

function revokeCommand(): Command {
  return onStore('revoke')
    .description('take a token back; it is refused within seconds')
    .argument('<id>', 'as belfry token list shows it, or the token itself')
    .action(async (given: string, flags: Flags) => {
      const { Tokens, tokenCredential } = await import('../server/security/tokens.js')
      const id = tokenCredential(given)?.id ?? given
      await withStore(flags, async (store) => {
        if (!(await new Tokens(store.records).revoke(id))) {
          throw failure('OPTION_INVALID', `there is no token ${quote(id)}: belfry token list shows which there are`)
        }
        await record(store, 'token.revoke', id)
        process.stderr.write(`token ${id}: revoked\n`)
      })
    })
}

async function withStore(flags: Flags, work: (store: Store) => Promise<void>): Promise<void> {
  const [{ configFile }, { storeSettings }, { openStore }, { quietSqlite }] = await Promise.all([
    import('./config-file.js'),
    import('./serve/serve-settings.js'),
    import('./open-store.js'),
    import('./dev/quiet-sqlite.js'),
  ])
  quietSqlite()
  const file = await configFile({ ...flags }, process.env)
  const store = await openStore(storeSettings({ flags: { ...flags }, env: process.env, file }))
  try {
    await work(store)
  } finally {
    await store.close()
  }
}

async function record(store: Store, action: string, id: string, detail?: Record<string, string | number>) {
  const { AuditTrail } = await import('../server/audit-trail.js')
  const { stderrLogger } = await import('../core/logger.js')
  await new AuditTrail(store.records, stderrLogger).write(CLI, action, id, detail)
}

async function allTokens(store: Store): Promise<readonly TokenInfo[]> {
  const { Tokens } = await import('../server/security/tokens.js')
  const tokens = new Tokens(store.records)
  const found: TokenInfo[] = []
  for (let after: string | undefined; ; ) {
    const page = await tokens.list({ limit: 500, ...(after === undefined ? {} : { after }) })
    found.push(...page.items)
    if (page.next === undefined) return found
    after = page.next
  }
}

function print(tokens: readonly TokenInfo[], format: Format): void {
  if (format !== 'table') {
    const plain = tokens.map(({ createdAt, expiresAt, ...token }) => ({
      ...token,
      createdAt: new Date(createdAt).toISOString(),
      ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
    }))
    if (format === 'json') process.stdout.write(`${JSON.stringify(plain, null, 2)}\n`)
    else for (const token of plain) process.stdout.write(`${JSON.stringify(token)}\n`)
    return
  }
  if (tokens.length === 0) process.stderr.write('there are no tokens: belfry token create --role admin makes one\n')
  for (const info of tokens) process.stdout.write(`${info.id}  ${inWords(info)}\n`)
}

function inWords({ id, name, role, prefix, expiresAt }: TokenInfo): string {
  const day = (at: number) => new Date(at).toISOString().slice(0, 16).replace('T', ' ')
  return [
    role,
    prefix === undefined ? '' : ` on ${quote(prefix)}`,
    name === id ? '' : ` for ${quote(name)}`,
    expiresAt === undefined ? '' : `, until ${day(expiresAt)} UTC`,
  ].join('')
}
