import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'

/** TLS options, in PEM. `cert` and `key` are for mutual TLS. */
export interface TlsOptions {
  /** CAs of the brokers' certificates. Default: the CAs that the runtime trusts. */
  readonly ca?: string | readonly string[]
  readonly cert?: string
  readonly key?: string
  readonly passphrase?: string
  /** False accepts any certificate: for tests. */
  readonly rejectUnauthorized?: boolean
}

export interface Tls extends Omit<TlsOptions, 'ca'> {
  readonly ca?: string
}

const KNOWN = ['ca', 'cert', 'key', 'passphrase', 'rejectUnauthorized']

export function parseTls(ssl: unknown, where: string): Tls | undefined {
  if (ssl === undefined || ssl === false) return undefined
  if (ssl === true) return {}
  checkOptions(ssl, KNOWN, `${where}: ssl`)
  const { ca, ...rest } = ssl as TlsOptions
  const authorities = typeof ca === 'string' ? [ca] : ca
  const texts = Object.entries({ ...rest, rejectUnauthorized: undefined, ca: authorities?.join('\n') })
  for (const [name, text] of texts) {
    if (text === undefined) continue
    if (typeof text !== 'string' || (name !== 'passphrase' && !text.includes('-----BEGIN'))) {
      // The message omits the value, which may be a secret.
      throw failure('OPTION_INVALID', `${where}: ssl.${name} must be text in PEM ("-----BEGIN …")`)
    }
  }
  if ((rest.cert === undefined) !== (rest.key === undefined)) {
    throw failure('OPTION_INVALID', `${where}: ssl.cert and ssl.key are for mutual TLS: give both, or none`)
  }
  if (rest.rejectUnauthorized !== undefined && typeof rest.rejectUnauthorized !== 'boolean') {
    throw failure(
      'OPTION_INVALID',
      `${where}: ssl.rejectUnauthorized is ${quote(rest.rejectUnauthorized)}; write true or false`,
    )
  }
  return authorities === undefined ? rest : { ...rest, ca: authorities.join('\n') }
}
