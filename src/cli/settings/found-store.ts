/** A config file that was merely found must not decide which server gets the Postgres password of the environment. */
import { failure } from '../../core/errors.js'
import { type SettingSources, settingsFinder } from './config.js'

/** Throws if the store is such a server: the driver sends PGPASSWORD wherever the URL has no password of its own. */
export function mustNotGetPassword(sources: SettingSources): void {
  const { env, file } = sources
  const store = settingsFinder(sources)('store')
  if (store === undefined || store.precedence > 1 || file?.isNamed !== false) return
  if (!env.PGPASSWORD || !namesServer(store.value)) return
  throw failure(
    'OPTION_INVALID',
    `PGPASSWORD is not sent to the store of ${file.path}, which was only found in this folder: give the store with BELFRY_STORE or --store, or name the file with --config ${file.path}`,
  )
}

/** Whether it is the URL of a Postgres server, without a password. Without a host, the environment names the server. */
function namesServer(store: unknown): boolean {
  if (typeof store !== 'string' || !/^\s*postgres(?:ql)?:/i.test(store)) return false
  // The store refuses a URL that cannot be parsed.
  if (!URL.canParse(store)) return true
  const { hostname, password, searchParams } = new URL(store)
  const hasPassword = password !== '' || Boolean(searchParams.get('password'))
  return !hasPassword && (hostname !== '' || Boolean(searchParams.get('host')))
}
