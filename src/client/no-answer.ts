/** Errors for requests that no Belfry service answered: nothing answers at the address, or another program does. */
import { type Problem, ServiceError } from './service-error.js'

/** Every answer of a Belfry service has this header. */
const MARK = 'belfry-api'

export function isFromBelfry(response: Response): boolean {
  return response.headers.has(MARK)
}

/** The problem in an answer of a service. */
export async function problemOf(response: Response): Promise<Problem> {
  const { status } = response
  const text = await response.text()
  const given = parsed(text) as Partial<Problem> | undefined
  if (typeof given?.code === 'string') return { detail: text, ...given, status, code: given.code }
  return { status, code: 'UNEXPECTED', detail: `the answer was ${status}: ${text.slice(0, 200)}` }
}

/** The error for an answer without the header: that of a proxy, or of another program at the address. */
export async function foreignAnswer(response: Response, url: string): Promise<ServiceError> {
  const { status, headers } = response
  const type = headers.get('content-type')?.split(';', 1)[0] ?? 'no content type'
  const said = await excerptOf(response, type)
  const answer = `${url}: ${status} (${type})${said === '' ? ' with an empty body' : `, "${said}"`}`
  const [who, hint] =
    status >= 502 && status <= 504
      ? ['a proxy that cannot reach the service', 'is the service running?']
      : ['another program than Belfry', hintFor(said)]
  return new ServiceError({ status, code: 'NOT_BELFRY', detail: `${who} answered ${answer}`, hint })
}

function hintFor(said: string): string {
  if (/plain http request|http to an https|client sent an http request/i.test(said)) {
    return 'this port speaks TLS: write the URL with https://'
  }
  return 'check the host, the port and the path of the URL'
}

const MAX_EXCERPT = 200

async function excerptOf(response: Response, type: string): Promise<string> {
  const text = await firstPartOf(response)
  const title = type.endsWith('html') ? /<title[^>]*>([^<]*)/i.exec(text)?.[1] : undefined
  return (title ?? text).replace(/\s+/g, ' ').trim().slice(0, MAX_EXCERPT)
}

/** Reads at most the first chunks of a body that may be endless. */
async function firstPartOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  try {
    while (text.length < 4_096) {
      const { value, done } = await reader.read()
      if (done) break
      text += value
    }
  } catch {
    // What has arrived before the connection broke is enough for a message.
  }
  await reader.cancel().catch(() => {})
  return text
}

/** The error for a request without an answer. */
export function noAnswer(url: string, cause: unknown): ServiceError {
  const detail = `no service answers on ${url}${reasonOf(cause)}`
  return new ServiceError({ status: 0, code: 'UNREACHABLE', detail }, { cause })
}

/** The network's own error, which fetch hides in its cause. */
function reasonOf(error: unknown): string {
  const inner = error instanceof Error ? error.cause : undefined
  if (!(inner instanceof Error)) return ''
  const { code = '' } = inner as { readonly code?: string }
  const known = REASONS.find(([pattern]) => pattern.test(code))
  // An OpenSSL message names lines of OpenSSL's source; the error code tells the user more.
  const reason = known?.[1] ?? (code.startsWith('ERR_SSL_') ? code : firstMessageOf(inner))
  return reason === '' ? '' : ` (${reason})`
}

const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)/,
    'this port does not speak TLS: write the URL with http://',
  ],
  [/^HPE_/, 'what answers does not speak HTTP: check the port'],
  [
    /^(UND_ERR_SOCKET|ECONNRESET)$/,
    'the connection was closed without an answer: check the port, and whether it wants https://',
  ],
]

/** A host with several addresses fails with one error for each address, and with no message of its own. */
function firstMessageOf(error: Error): string {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message
  const [first] = error.errors as readonly unknown[]
  return first instanceof Error ? first.message : ''
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
