import { Command } from 'commander'
import { located } from '../../api/located.js'
import type { Json } from '../../core/checks/json.js'
import { BelfryError, quote } from '../../core/errors.js'
import type { Store } from '../../core/store.js'
import type { TokenInfo } from '../../server/security/tokens.js'
import { durationMs } from '../../time/duration.js'
import { writeLine } from '../terminal/clean-text.js'
import type { Output } from '../terminal/output.js'
import type { Column } from '../terminal/table.js'

interface Flags {
  readonly store?: string
  readonly schema?: string
  readonly config?: string
}

export function tokenCommand(command: Command): void {
  for (const sub of [createCommand(), listCommand(), revokeCommand()]) command.addCommand(sub)
}

/** Token commands work on the store directly, with the settings of `belfry serve`. */
function onStore(name: string): Command {
  return new Command(name)
    .option('--store <where>', 'postgres://…, redis://… or a file (belfry.db)')
    .option('--schema <name>', 'the Postgres schema, or the prefix of Redis keys')
    .option('--config <file>', 'the config file of belfry serve')
}

function createCommand(): Command {
  return onStore('create')
    .description('create a token; it is printed once, and only its hash is stored')
    .requiredOption('--role <role>', 'viewer, operator, worker or admin')
    .option('--prefix <text>', 'it sees and changes only ids that begin with this')
    .option('--jobs <names>', 'jobs that its schedules may name, as in a/*,mail (those with the prefix)')
    .option('--sinks <names>', 'sinks that its schedules may name (those with the prefix)')
    .option('--max-schedules <n>', 'schedules that may be below its prefix')
    .option('--max-runs <n>', 'unfinished runs that may be below its prefix')
    .option('--max-locks <n>', 'locks that may be held below its prefix')
    .option('--import-rate <n>', 'lines a second that its imports take')
    .option('--name <text>', 'name of the token, such as its user')
    .option('--expires <duration>', 'expires after this long, such as 90d')
    .addHelpText(
      'after',
      `
Only the token goes to standard output, everything else to standard error.

Examples:
  belfry token create --role admin --name ana
  belfry token create --role operator --prefix billing/ --expires 90d
  belfry token create --role operator --prefix billing/ --jobs 'billing/*,mail'`,
    )
    .action(
      async ({ role, prefix, jobs, sinks, name, expires, ...given }: Flags & Record<string, string | undefined>) => {
        const ttlMs = expires === undefined ? undefined : located('--expires', () => durationMs(expires))
        const { maxSchedules, maxRuns, maxLocks, importRate, ...flags } = given
        const quota = quotaOf({ schedules: maxSchedules, runs: maxRuns, locks: maxLocks, importRate })
        const { Tokens, checkRole } = await import('../../server/security/tokens.js')
        const wanted = {
          role: checkRole(role),
          ...(prefix === undefined ? {} : { prefix }),
          ...(jobs === undefined ? {} : { jobs: namesIn(jobs) }),
          ...(sinks === undefined ? {} : { sinks: namesIn(sinks) }),
          ...(Object.keys(quota).length === 0 ? {} : { quota }),
          ...(name === undefined ? {} : { name }),
          ...(ttlMs === undefined ? {} : { ttlMs }),
        }
        await withStore(flags, 'create', async (store) => {
          const { token, info } = await new Tokens(store.records).create(wanted)
          await record(store, 'token.create', info.id, { ...wanted })
          writeLine(process.stderr, `token ${info.id}: ${summaryOf(info)}. It is shown only once:`)
          writeLine(process.stdout, `${token}`)
        })
      },
    )
}

function listCommand(): Command {
  return onStore('list')
    .description('list tokens')
    .option('-o, --output <format>', 'table, json or jsonl')
    .addHelpText(
      'after',
      `
Examples:
  belfry token list
  belfry token list --store postgres://app@db.example/app -o json`,
    )
    .action(async (flags: Flags & { readonly output?: string }) => {
      const { formatOf } = await import('../settings/operator-settings.js')
      const { settingSources } = await import('../settings/config-file.js')
      const { Output } = await import('../terminal/output.js')
      const out = new Output(formatOf(await settingSources({ ...flags })))
      await withStore(flags, 'must exist', async (store) => print(await allTokens(store), out))
    })
}

function revokeCommand(): Command {
  return onStore('revoke')
    .description('revoke a token; services refuse it within seconds')
    .argument('<id>', 'id from belfry token list, or the token itself')
    .addHelpText(
      'after',
      `
Examples:
  belfry token revoke 4kq2w7xnb3ca
  belfry token revoke "$BELFRY_TOKEN" --store belfry.db`,
    )
    .action(async (given: string, flags: Flags) => {
      const { Tokens, tokenCredential } = await import('../../server/security/tokens.js')
      const id = tokenCredential(given)?.id ?? given
      await withStore(flags, 'must exist', async (store) => {
        if (!(await new Tokens(store.records).revoke(id))) {
          throw new BelfryError('NOT_FOUND', `there is no token ${quote(id)}: belfry token list lists all`)
        }
        await record(store, 'token.revoke', id)
        writeLine(process.stderr, `token ${id}: revoked`)
      })
    })
}

/** The names of a flag: separated by commas. An empty text allows none. */
function namesIn(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

function quotaOf(flags: Readonly<Record<string, string | undefined>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(flags).flatMap(([name, text]) => (text === undefined ? [] : [[name, Number(text)]])),
  )
}

/** Creating the first token may create the store; listing and revoking need one that exists. */
async function withStore(
  flags: Flags,
  mode: 'must exist' | 'create',
  work: (store: Store) => Promise<void>,
): Promise<void> {
  const [{ configFile }, { storeSettings }, { opened, storeLocation }, { quietSqlite }] = await Promise.all([
    import('../settings/config-file.js'),
    import('../settings/serve-settings.js'),
    import('../settings/open-store.js'),
    import('../settings/quiet-sqlite.js'),
  ])
  quietSqlite()
  const file = await configFile({ ...flags }, process.env, 'own')
  const location = storeLocation(storeSettings({ flags: { ...flags }, env: process.env, file }))
  if (mode === 'must exist') location.mustExist()
  const store = await opened(await location.open())
  try {
    await work(store)
  } finally {
    await store.close()
  }
}

async function record(store: Store, action: string, id: string, detail?: Json) {
  const { AuditTrail } = await import('../../server/audit/audit-trail.js')
  const { stderrLogger } = await import('../../core/logger.js')
  const { localCaller } = await import('../operator/local-caller.js')
  await new AuditTrail(store.records, stderrLogger).write(localCaller(), action, id, detail)
}

async function allTokens(store: Store): Promise<readonly TokenInfo[]> {
  const { Tokens } = await import('../../server/security/tokens.js')
  const tokens = new Tokens(store.records)
  const found: TokenInfo[] = []
  for (let after: string | undefined; ; ) {
    const page = await tokens.list({ limit: 500, ...(after === undefined ? {} : { after }) })
    found.push(...page.items)
    if (page.next === undefined) return found
    after = page.next
  }
}

const COLUMNS: readonly Column<TokenInfo>[] = [
  { title: 'id', cell: ({ id }) => id },
  { title: 'role', cell: ({ role }) => role },
  { title: 'prefix', cell: ({ prefix = '' }) => prefix, least: 6 },
  { title: 'jobs', cell: ({ jobs = [] }) => jobs.join(','), least: 4 },
  { title: 'sinks', cell: ({ sinks = [] }) => sinks.join(','), least: 5 },
  { title: 'name', cell: ({ id, name }) => (name === id ? '' : name), least: 8 },
  { title: 'created (utc)', cell: ({ createdAt }) => minuteOf(createdAt) },
  { title: 'expires (utc)', cell: ({ expiresAt }) => (expiresAt === undefined ? '–' : minuteOf(expiresAt)) },
]

/** The token with its instants as text, as in the API. */
function toJson({ createdAt, expiresAt, ...token }: TokenInfo) {
  return {
    ...token,
    createdAt: new Date(createdAt).toISOString(),
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
  }
}

async function print(tokens: readonly TokenInfo[], out: Output): Promise<void> {
  if (out.format === 'table') {
    return out.list(tokens, COLUMNS, 'no tokens: belfry token create --role admin creates one')
  }
  return out.list(tokens.map(toJson), [], '')
}

function summaryOf({ id, name, role, prefix, jobs, sinks, expiresAt }: TokenInfo): string {
  return [
    role,
    prefix === undefined ? '' : ` on ${quote(prefix)}`,
    jobs === undefined ? '' : `, jobs ${jobs.map(quote).join(', ') || 'none'}`,
    sinks === undefined ? '' : `, sinks ${sinks.map(quote).join(', ') || 'none'}`,
    name === id ? '' : ` for ${quote(name)}`,
    expiresAt === undefined ? '' : `, until ${minuteOf(expiresAt)} UTC`,
  ].join('')
}

function minuteOf(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ')
}
