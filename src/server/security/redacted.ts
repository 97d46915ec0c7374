/** Removes payloads, which are users' data, and secrets from logs and audit entries. */
import type { Json } from '../../core/checks/json.js'

const HIDDEN = /^(payload|result|authorization|cookie|set-cookie|password|secret|token|hash|credentials?|api[-_]?key)$/i
/** Belfry tokens, and passwords inside URLs, anywhere in a text. */
const TOKENS = /belfry_[a-z2-7]{12}_[A-Za-z0-9_-]{43}/g
const PASSWORDS = /([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s@/]*@/gi
const MARK = '[redacted]'
const MAX_DEPTH = 12

export function redacted(value: Json, depth = 0): Json {
  if (typeof value === 'string') return redactedText(value)
  if (value === null || typeof value !== 'object') return value
  if (depth >= MAX_DEPTH) return MARK
  if (Array.isArray(value)) return value.map((item: Json) => redacted(item, depth + 1))
  const copy: Record<string, Json> = {}
  for (const [key, member] of Object.entries(value as { readonly [key: string]: Json })) {
    copy[key] = HIDDEN.test(key) ? MARK : redacted(member, depth + 1)
  }
  return copy
}

export function redactedText(text: string): string {
  const plain = text.includes('belfry_') ? text.replaceAll(TOKENS, MARK) : text
  return plain.includes('://') ? plain.replaceAll(PASSWORDS, `$1:${MARK}@`) : plain
}
