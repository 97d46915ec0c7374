/** What every answer tells a browser, so that nothing of it is run, framed, sniffed or kept. */

/** Answers of the API are data: no page may make anything else of them. */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const ALWAYS: Readonly<Record<string, string>> = {
  'content-security-policy': DATA_POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
}

const YEAR_S = 365 * 24 * 3_600

/** Adds them where the answer does not say otherwise. */
export function addSecurityHeaders(headers: Headers, secure: boolean): void {
  for (const [name, value] of Object.entries(ALWAYS)) if (!headers.has(name)) headers.set(name, value)
  if (secure) headers.set('strict-transport-security', `max-age=${YEAR_S}`)
}
