/**
 * The text of a token or a session cookie: a public id, and a secret of 256 random bits of which only the SHA-256 is stored.
 *
 *     k3q7m2xw5pza_9Jv…43 characters…   id "k3q7m2xw5pza", underscore, secret in base64url
 *
 * A slow password hash would add nothing: random secrets cannot be guessed from a dictionary.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export interface Credential {
  /** The public part, by which the store finds the record. */
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

/** Returns undefined for malformed text, which needs no lookup in the store. */
export function parseCredential(text: string): Credential | undefined {
  const [, id, secret] = SHAPE.exec(text) ?? []
  return id === undefined || secret === undefined ? undefined : { id, secret }
}

/** The stored form of a secret. */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/** Compares in constant time. */
export function matchesHash(secret: string, hash: string): boolean {
  const [one, other] = [Buffer.from(secretHash(secret)), Buffer.from(hash)]
  return one.length === other.length && timingSafeEqual(one, other)
}
