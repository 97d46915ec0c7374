/** Checks the connection options. They have the same meaning for every client. */

import { checkOptions } from '../../core/checks/known-options.js'
import { failure, quote } from '../../core/errors.js'
import { type Duration, durationMs } from '../../time/duration.js'
import {
  type ClientSettings,
  COMPRESSIONS,
  type Compression,
  PASSWORD_MECHANISMS,
  type PasswordMechanism,
  type Sasl,
} from './client.js'
import { parseTls, type TlsOptions } from './tls.js'

export interface ClusterOptions {
  /** TLS: true, or the trusted CAs and, for mutual TLS, the client's certificate, in PEM. */
  readonly ssl?: boolean | TlsOptions
  readonly sasl?: SaslOptions
  /** Default `none`. kafkajs supports only `none` and `gzip`. */
  readonly compression?: Compression
  /** A message counts as written when `all` in-sync replicas have it (default), or the `leader` alone. */
  readonly acks?: 'all' | 'leader'
  /** The client's name in the brokers' logs and quotas. Default `belfry`. */
  readonly clientId?: string
  /** How long a broker may take to answer. Default 10 s. */
  readonly requestTimeout?: Duration
  /** How long connecting may take. Default 3 s. */
  readonly connectionTimeout?: Duration
  /** Other options of the client, in its own terms; they override those of Belfry. */
  readonly clientOptions?: Readonly<Record<string, unknown>>
}

export type SaslOptions =
  | { readonly mechanism: PasswordMechanism; readonly username: string; readonly password: string }
  /** A token, or a function that returns one and is called before each connection. */
  | { readonly mechanism: 'oauthbearer'; readonly token: string | (() => string | Promise<string>) }

export const CLUSTER_OPTIONS = [
  'ssl',
  'sasl',
  'compression',
  'acks',
  'clientId',
  'requestTimeout',
  'connectionTimeout',
  'clientOptions',
] as const

/** Shorter than the lease, and longer than the cluster needs to declare a broker dead. */
const REQUEST_TIMEOUT = '10s'
const CONNECTION_TIMEOUT = '3s'
const REPLICA_SHARE = 0.9

export function clientSettings(options: ClusterOptions, where: string): ClientSettings {
  const { compression = 'none', acks = 'all', clientId = 'belfry', clientOptions = {} } = options
  if (!COMPRESSIONS.includes(compression)) {
    throw failure(
      'OPTION_INVALID',
      `${where}: compression is ${quote(compression)}; allowed are ${COMPRESSIONS.join(', ')}`,
    )
  }
  if (acks !== 'all' && acks !== 'leader') {
    throw failure('OPTION_INVALID', `${where}: acks is ${quote(acks)}; write "all" or "leader"`)
  }
  if (typeof clientId !== 'string' || clientId === '') {
    throw failure('OPTION_INVALID', `${where}: clientId is ${quote(clientId)}; it must be text`)
  }
  if (typeof clientOptions !== 'object' || clientOptions === null || Array.isArray(clientOptions)) {
    throw failure('OPTION_INVALID', `${where}: clientOptions is ${quote(clientOptions)}; it must be an object`)
  }
  const requestTimeoutMs = durationMs(options.requestTimeout ?? REQUEST_TIMEOUT)
  return {
    clientId,
    compression,
    acks: acks === 'all' ? -1 : 1,
    tls: parseTls(options.ssl, where),
    sasl: parseSasl(options.sasl, where),
    requestTimeoutMs,
    replicaTimeoutMs: Math.ceil(requestTimeoutMs * REPLICA_SHARE),
    connectionTimeoutMs: durationMs(options.connectionTimeout ?? CONNECTION_TIMEOUT),
    more: clientOptions,
  }
}

function parseSasl(sasl: unknown, where: string): Sasl | undefined {
  if (sasl === undefined) return undefined
  const { mechanism, username, password, token } = (sasl ?? {}) as Record<string, unknown>
  if (mechanism === 'oauthbearer') {
    checkOptions(sasl, ['mechanism', 'token'], `${where}: sasl`)
    if (typeof token === 'function') return { mechanism, token: async () => String(await token()) }
    if (typeof token === 'string' && token !== '') return { mechanism, token: async () => token }
    throw failure('OPTION_INVALID', `${where}: sasl.token must be a token, or a function that gets one`)
  }
  const known = PASSWORD_MECHANISMS.find((each) => each === mechanism)
  if (known === undefined) {
    const all = [...PASSWORD_MECHANISMS, 'oauthbearer'].join(', ')
    throw failure('OPTION_INVALID', `${where}: sasl.mechanism is ${quote(mechanism)}; allowed are ${all}`)
  }
  checkOptions(sasl, ['mechanism', 'username', 'password'], `${where}: sasl`)
  if (typeof username !== 'string' || typeof password !== 'string') {
    throw failure('OPTION_INVALID', `${where}: sasl needs a username and a password for ${known}`)
  }
  return { mechanism: known, username, password }
}
