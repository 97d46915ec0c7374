/**
 * Signatures by the Standard Webhooks scheme: one for each secret, over id, timestamp and body.
 *
 *     whsec_…   HMAC-SHA256. The receiver has the same secret, so it could sign, too.
 *     whsk_…    Ed25519. The receiver has the public key (`whpk_…`), with which it can only verify.
 *
 * A schedule may name a receiver that belongs to somebody else than the sink. With the sink's own `whsec_` that receiver could
 * sign events for all others. So each such receiver has a secret of its own, derived from the sink's and the receiver's origin:
 *
 *     HKDF-SHA256(secret of the sink, "belfry webhook https://shop.example")   →   whsec_…
 */
import { createHmac, createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign } from 'node:crypto'
import { failure, quote } from '../../core/errors.js'

export interface Secret {
  /** The signature of this content for the sink's own receiver, or for the receiver at an origin. */
  sign(content: string, origin?: string): string
  /** What the receiver at an origin verifies signatures with. */
  receiverSecret(origin: string): string
}

const SYMMETRIC = 'whsec_'
const PRIVATE = 'whsk_'
const PUBLIC = 'whpk_'
const MIN_BYTES = 24
const MAX_BYTES = 64
const DERIVED_BYTES = 32
/** How many derived secrets are cached. */
const MOST_ORIGINS = 1_000
const SEED_BYTES = 32
/** An Ed25519 private key as PKCS #8 is this and the 32 bytes of its seed. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')
/** A public key as SPKI ends with its 32 bytes. */
const PUBLIC_BYTES = 32

/** Parses secrets: `whsec_` or `whsk_`, and base64. Errors never show a secret. */
export function parseSecrets(secrets: readonly (string | undefined)[], where: string): readonly Secret[] {
  return secrets.map((secret, at) => {
    const which = `${where}: secret ${at + 1} of ${secrets.length}`
    if (typeof secret !== 'string' || secret === '')
      throw failure('OPTION_INVALID', `${which} is missing: is its variable set?`)
    if (secret.startsWith(PRIVATE)) return ed25519(bytesOf(secret.slice(PRIVATE.length)), which)
    const key = secret.startsWith(SYMMETRIC) ? bytesOf(secret.slice(SYMMETRIC.length)) : Buffer.alloc(0)
    if (key.length < MIN_BYTES || key.length > MAX_BYTES) {
      throw failure(
        'OPTION_INVALID',
        `${which} must be "${SYMMETRIC}" and the base64 of ${MIN_BYTES} to ${MAX_BYTES} random bytes (openssl rand -base64 32), or "${PRIVATE}" and that of an Ed25519 key`,
      )
    }
    return symmetric(key)
  })
}

/** The value of `webhook-signature`, with a signature for each secret, so that secrets can be rotated. */
export function signatures(
  secrets: readonly Secret[],
  { id, seconds, body, origin }: { id: string; seconds: number; body: string; origin: string | undefined },
): string {
  return secrets.map((secret) => secret.sign(`${id}.${seconds}.${body}`, origin)).join(' ')
}

/**
 * What the receiver of a URL needs to verify events that come from a sink without that URL: `whsec_…` derived from a `whsec_…`,
 * or the public key `whpk_…` of a `whsk_…`.
 */
export function receiverSecret(secret: string, url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw failure('OPTION_INVALID', `receiverSecret(): ${quote(url)} is no http or https URL`)
  }
  const [parsed] = parseSecrets([secret], 'receiverSecret()')
  return parsed?.receiverSecret(new URL(url).origin) ?? ''
}

function symmetric(key: Buffer): Secret {
  const cached = new Map<string, Buffer>()
  const keyOf = (origin: string) => {
    const derived = cached.get(origin) ?? derivedKey(key, origin)
    if (cached.size >= MOST_ORIGINS) cached.clear()
    cached.set(origin, derived)
    return derived
  }
  return {
    sign: (content, origin) => {
      const mac = createHmac('sha256', origin === undefined ? key : keyOf(origin))
      return `v1,${mac.update(content).digest('base64')}`
    },
    receiverSecret: (origin) => SYMMETRIC + keyOf(origin).toString('base64'),
  }
}

function derivedKey(key: Buffer, origin: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `belfry webhook ${origin}`, DERIVED_BYTES))
}

/** The key is the seed, or the seed and the public key, as libraries of Standard Webhooks have it. */
function ed25519(bytes: Buffer, which: string): Secret {
  const key = bytes.length === SEED_BYTES || bytes.length === SEED_BYTES + PUBLIC_BYTES ? privateKey(bytes) : undefined
  const publicBytes = key === undefined ? undefined : publicBytesOf(key)
  const rest = bytes.subarray(SEED_BYTES)
  if (key === undefined || publicBytes === undefined || (rest.length > 0 && !rest.equals(publicBytes))) {
    const shape = 'the base64 of the 32 bytes of an Ed25519 key, or of these and its public key'
    throw failure('OPTION_INVALID', `${which} must be "${PRIVATE}" and ${shape}`)
  }
  return {
    sign: (content) => `v1a,${sign(null, Buffer.from(content), key).toString('base64')}`,
    receiverSecret: () => PUBLIC + publicBytes.toString('base64'),
  }
}

function privateKey(bytes: Buffer): KeyObject {
  const key = Buffer.concat([PKCS8, bytes.subarray(0, SEED_BYTES)])
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

function publicBytesOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-PUBLIC_BYTES)
}

/** Empty for text that is not base64. */
function bytesOf(text: string): Buffer {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0)
}
