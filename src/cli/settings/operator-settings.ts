/** Where a command works and how it answers, from flags, the environment and a config file. */
import { failure } from '../../core/errors.js'
import { FORMATS } from '../terminal/output.js'
import { type Given, oneOf, optional, readFound, resolveSettings, setting, settingsFinder, text } from './config.js'

/** Where a service that was started without settings listens. */
export const DEFAULT_URL = 'http://127.0.0.1:7420'

const TABLE = {
  token: setting<string | undefined>(optional(text), undefined),
  schema: setting<string | undefined>(optional(text), undefined),
  output: setting(oneOf(...FORMATS), 'table' as const),
}

export type Way =
  | { readonly url: string; readonly token?: string; readonly isDefault: boolean }
  | { readonly store: string; readonly schema?: string }

/** The stronger of a URL and a store: a flag counts more than the environment, and that more than a file. */
export function wayOf(given: Given): Way {
  const find = settingsFinder(given)
  const { token, schema } = resolveSettings(TABLE, given)
  const [url, store] = [find('url'), find('store')]
  if (url !== undefined && store !== undefined && url.strength === store.strength) {
    throw failure('OPTION_INVALID', `${url.where} and ${store.where} say two places: give one of them`)
  }
  if (store !== undefined && (url === undefined || store.strength > url.strength)) {
    return { store: readFound(store, text), ...(schema === undefined ? {} : { schema }) }
  }
  const credential = token === undefined ? {} : { token }
  if (url === undefined) return { url: DEFAULT_URL, isDefault: true, ...credential }
  return { url: checkUrl(readFound(url, text), url.where), isDefault: false, ...credential }
}

export function formatOf(given: Given) {
  return resolveSettings(TABLE, given).output
}

function checkUrl(url: string, where: string): string {
  if (/^https?:\/\//.test(url) && URL.canParse(url)) return url
  throw failure('OPTION_INVALID', `${where}: write the service's address as http://host:7420 or https://host`)
}
