/** Signatures by the Standard Webhooks scheme: an HMAC over id, timestamp and body for each secret. */
import { createHmac } from 'node:crypto'
import { failure } from '../../core/errors.js'

const PREFIX = 'whsec_'
const MIN_BYTES = 24
const MAX_BYTES = 64

/** Parses secrets, `whsec_` and base64. Errors never show a secret. */
export function parseSecrets(secrets: readonly (string | undefined)[], where: string): readonly Buffer[] {
  return secrets.map((secret, at) => {
    const which = `${where}: secret ${at + 1} of ${secrets.length}`
    if (typeof secret !== 'string' || secret === '')
      throw failure('OPTION_INVALID', `${which} is missing: is its variable set?`)
    const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
    const key = Buffer.from(text, 'base64')
    if (key.length < MIN_BYTES || key.length > MAX_BYTES || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) {
      throw failure(
        'OPTION_INVALID',
        `${which} must be "${PREFIX}" and the base64 of ${MIN_BYTES} to ${MAX_BYTES} random bytes (openssl rand -base64 32)`,
      )
    }
    return key
  })
}

/** The value of `webhook-signature`, with a signature for each secret, so that secrets can be rotated. */
export function signatures(secrets: readonly Buffer[], id: string, seconds: number, body: string): string {
  return secrets
    .map((secret) => `v1,${createHmac('sha256', secret).update(`${id}.${seconds}.${body}`).digest('base64')}`)
    .join(' ')
}
