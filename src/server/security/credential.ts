/**
 * What a caller shows to prove who he is: a public part to look it up by, and a secret of 256 random bits of which only
 * the SHA-256 is kept. A slow hash would add nothing: there is no list of likely secrets to try.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export interface Credential {
  /** The public part. */
  readonly id: string
  readonly secret: string
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
const ID_LENGTH = 12
const SECRET_BYTES = 32
const SHAPE = /^([a-z2-7]{12})_([A-Za-z0-9_-]{43})$/

export function newCredential(): Credential {
  const id = Array.from(randomBytes(ID_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
  return { id, secret: randomBytes(SECRET_BYTES).toString('base64url') }
}

export function credentialText({ id, secret }: Credential): string {
  return `${id}_${secret}`
}

/** Undefined for anything that cannot be one: it is not worth a look into the store. */
export function parseCredential(text: string): Credential | undefined {
  const [, id, secret] = SHAPE.exec(text) ?? []
  return id === undefined || secret === undefined ? undefined : { id, secret }
}

/** What is kept of a secret. */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/** In the same time, wherever they differ. */
export function matchesHash(secret: string, hash: string): boolean {
  const [one, other] = [Buffer.from(secretHash(secret)), Buffer.from(hash)]
  return one.length === other.length && timingSafeEqual(one, other)
}
