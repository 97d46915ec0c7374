/** Sends requests and reads answers. Every failure throws a `ServiceError`. */
import { foreignAnswer, isFromBelfry, noAnswer, problemOf } from './no-answer.js'
import { ServiceError } from './service-error.js'
import { serviceUrl } from './service-url.js'

export interface ClientOptions {
  /** The service's URL, including its base path: `https://belfry.example.com`, or `localhost:7420` on this machine. */
  readonly url: string
  /** A bearer token. Browsers with a session need none. */
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Default: the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>
}

export interface Ask {
  readonly method?: string
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
  readonly body?: unknown
  /** A body as text, with its content type. */
  readonly text?: { readonly type: string; readonly body: string }
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal
}

export class Requests {
  readonly #options: ClientOptions
  readonly #base: string

  constructor(options: ClientOptions) {
    this.#options = options
    this.#base = serviceUrl(options.url)
  }

  async json<Answer>(path: string, ask: Ask = {}): Promise<Answer> {
    return (await (await this.send(path, ask)).json()) as Answer
  }

  /** Sends a request, and returns undefined for 404. */
  async found<Answer>(path: string, ask: Ask = {}): Promise<Answer | undefined> {
    try {
      return await this.json<Answer>(path, ask)
    } catch (error) {
      if (error instanceof ServiceError && error.status === 404) return undefined
      throw error
    }
  }

  async send(path: string, ask: Ask = {}): Promise<Response> {
    checkPath(path)
    for (let attempt = 1; ; attempt += 1) {
      const response = await this.#sendOnce(path, ask)
      if (!isFromBelfry(response)) throw await foreignAnswer(response, `${this.#base}${path}`)
      if (response.ok) return response
      const waitMs = response.status === 429 && attempt < MAX_ATTEMPTS ? retryAfterMs(response) : undefined
      if (waitMs === undefined) throw new ServiceError(await problemOf(response))
      await response.body?.cancel()
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      ask.signal?.throwIfAborted()
    }
  }

  async #sendOnce(path: string, ask: Ask): Promise<Response> {
    const request = new Request(this.#url(path, ask.query), this.#init(ask))
    const send = this.#options.fetch ?? ((it: Request) => fetch(it))
    try {
      return await send(request)
    } catch (error) {
      if (ask.signal?.aborted) throw error
      throw noAnswer(this.#base, error)
    }
  }

  #url(path: string, query: Ask['query'] = {}): string {
    const given = Object.entries(query).filter(([, value]) => value !== undefined)
    const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
    return `${this.#base}${path}${search === '' ? '' : `?${search}`}`
  }

  #init({ method = 'GET', body, text, headers = {}, signal }: Ask): RequestInit {
    const { token, headers: own = {} } = this.#options
    const sent = text ?? (body === undefined ? undefined : { type: 'application/json', body: JSON.stringify(body) })
    const all = Object.entries({
      ...own,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(sent === undefined ? {} : { 'content-type': sent.type }),
      ...headers,
    }).filter((header): header is [string, string] => header[1] !== undefined)
    return {
      method,
      headers: all,
      ...(sent === undefined ? {} : { body: sent.body }),
      ...(signal === undefined ? {} : { signal }),
    }
  }
}

/** A request that was refused with 429 had no effect. It is sent again after the time that the service names, if that is short. */
const MAX_ATTEMPTS = 5
const MAX_WAIT_S = 5

function retryAfterMs(response: Response): number | undefined {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return seconds <= MAX_WAIT_S ? seconds * 1_000 : undefined
}

export function segment(id: string): string {
  return encodeURIComponent(id)
}

/** Segments that would change the path: empty ones, "." and "..". */
const NO_SEGMENT = /\/(\.{0,2})(?=\/|$)/

function checkPath(path: string): void {
  const name = NO_SEGMENT.exec(path)?.[1]
  if (name === undefined) return
  throw new ServiceError({ status: 400, code: 'NAME_INVALID', detail: `"${name}" is not allowed as a name` })
}
