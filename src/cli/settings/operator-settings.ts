/** The target and output format of a command, from flags, the environment and a config file. */
import { serviceUrl } from '../../client/service-url.js'
import { failure } from '../../core/errors.js'
import { FORMATS } from '../terminal/output.js'
import {
  type Found,
  oneOf,
  optional,
  readFound,
  resolveSettings,
  type SettingSources,
  setting,
  settingsFinder,
  text,
} from './config.js'
import { mustNotGetPassword } from './found-store.js'

/** The address of `belfry serve` without settings. */
export const DEFAULT_URL = 'http://127.0.0.1:7420'

const TABLE = {
  token: setting<string | undefined>(optional(text), undefined),
  schema: setting<string | undefined>(optional(text), undefined),
  output: setting(oneOf(...FORMATS), 'table' as const),
}

export type Target =
  | { readonly url: string; readonly token?: string; readonly isDefault: boolean }
  | { readonly store: string; readonly schema?: string }

/** A URL or a store, whichever has the higher precedence: flags, then the environment, then the config file. */
export function targetOf(sources: SettingSources): Target {
  const find = settingsFinder(sources)
  const { token, schema } = resolveSettings(TABLE, sources)
  const [url, store] = [find('url'), find('store')]
  if (url !== undefined && store !== undefined && url.precedence === store.precedence) {
    throw failure('OPTION_INVALID', `${url.where} and ${store.where} name two targets: give one of them`)
  }
  if (store !== undefined && (url === undefined || store.precedence > url.precedence)) {
    mustNotGetPassword(sources)
    return { store: readFound(store, text), ...(schema === undefined ? {} : { schema }) }
  }
  if (url !== undefined) mustNotBeFound(url, find('token'), sources)
  const credential = token === undefined ? {} : { token }
  if (url === undefined) return { url: DEFAULT_URL, isDefault: true, ...credential }
  return { url: serviceUrl(readFound(url, text), url.where), isDefault: false, ...credential }
}

export function formatOf(sources: SettingSources) {
  return resolveSettings(TABLE, sources).output
}

/** A config file that was merely found must not decide where the user's token is sent. */
function mustNotBeFound(url: Found, token: Found | undefined, { file }: SettingSources): void {
  const isFound = url.precedence === 1 && file?.isNamed === false
  if (!isFound || token === undefined || token.precedence === 1) return
  throw failure(
    'OPTION_INVALID',
    `${token.where} is not sent to the url of ${file.path}, which was only found in this folder: give the url with BELFRY_URL or --url, or name the file with --config ${file.path}`,
  )
}
