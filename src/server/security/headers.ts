/** Headers of every answer. A browser must not execute, frame, sniff or cache it. */

/** The API answers with data only, so its policy allows no resource at all. */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const YEAR_S = 365 * 24 * 3_600

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  /** The version of the API. By this header a client knows that no other program answered. */
  'belfry-api': '1',
  'content-security-policy': DATA_POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
}

export const SECURITY_HEADERS_OVER_TLS: Readonly<Record<string, string>> = {
  ...SECURITY_HEADERS,
  'strict-transport-security': `max-age=${YEAR_S}`,
}
