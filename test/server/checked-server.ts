/**
 * A server for tests that validates every answer against its own OpenAPI document. An undocumented status, or a body
 * that does not match its schema, fails the test.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Belfry } from '../../src/index.js'
import { type BelfryServer, createServer, type RequestInfo, type ServerOptions } from '../../src/server/index.js'

interface Media {
  readonly schema?: object
}
interface Described {
  readonly $ref?: string
  readonly headers?: Record<string, { readonly required?: boolean }>
  readonly content?: Record<string, Media>
}
interface Operation {
  readonly operationId: string
  readonly 'x-role'?: string
  readonly responses: Record<string, Described>
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: {
    readonly schemas: Record<string, object>
    readonly responses: Record<string, Described>
  }
}

export interface Asked {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

export interface CheckedServer extends BelfryServer {
  readonly document: Document
  /** The operations called so far, each with its statuses. */
  readonly seen: Map<string, Set<number>>
  /** Sends and receives JSON. */
  ask(path: string, asked?: Asked): Promise<Answered>
}

export interface Answered {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
  readonly body: any
}

export async function checkedServer(belfry: Belfry, options: ServerOptions = {}): Promise<CheckedServer> {
  const server = createServer(belfry, options)
  const base = options.basePath ?? ''
  const document = (await (await server.fetch(new Request(`http://localhost${base}/openapi.json`))).json()) as Document
  const text = JSON.stringify(document)
  const check = CHECKS.get(text) ?? answerCheck(document, base)
  CHECKS.set(text, check)
  const seen = new Map<string, Set<number>>()
  const fetch = async (request: Request, info?: RequestInfo) => {
    const response = await server.fetch(request, info)
    const operation = await check(request, response)
    if (operation !== undefined) seen.set(operation, (seen.get(operation) ?? new Set()).add(response.status))
    return response
  }
  return {
    ...{ document, seen, fetch, close: () => server.close() },
    ask: async (path, { method = 'GET', body, headers = {} } = {}) => {
      const sent = body === undefined ? {} : { 'content-type': 'application/json' }
      const text = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
      const request = new Request(`http://localhost${base}${path}`, {
        method,
        headers: { ...sent, ...headers },
        ...text,
      })
      const response = await fetch(request)
      const answer = await response.text()
      const type = response.headers.get('content-type')?.split(';')[0]
      return { status: response.status, headers: response.headers, body: isJson(type) ? JSON.parse(answer) : answer }
    },
  }
}

/** Compiled schemas, cached because compiling is slow and most tests share a document. */
const CHECKS = new Map<string, ReturnType<typeof answerCheck>>()

/** Throws unless the document describes the answer; returns the operation. */
export function answerCheck(document: Document, base: string) {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true })
  addFormats.default(ajv)
  ajv.addSchema({ $id: 'doc', components: document.components })
  const validators = new Map<object, ReturnType<typeof ajv.compile>>()
  const validatorOf = (schema: object) => {
    const known = validators.get(schema) ?? ajv.compile(rooted(schema))
    validators.set(schema, known)
    return known
  }
  const patterns = Object.entries(document.paths).map(([path, operations]) => ({
    pattern: new RegExp(`^${base}${path.replaceAll(/[.:]/g, '\\$&').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    operations,
  }))
  return async (request: Request, response: Response): Promise<string | undefined> => {
    const { pathname } = new URL(request.url)
    const method = request.method === 'HEAD' ? 'get' : request.method.toLowerCase()
    const operation = patterns.find(({ pattern }) => pattern.test(pathname))?.operations[method]
    const { status } = response
    const where = `${request.method} ${pathname} → ${status}`
    const given = operation?.responses[status] ?? (isUnexpected(operation, status) ? PROBLEM : undefined)
    const described = given?.$ref === undefined ? given : document.components.responses[nameOf(given.$ref)]
    if (described === undefined) throw new Error(`${where}: the document has no such answer`)
    for (const [name, { required }] of Object.entries(described.headers ?? {})) {
      if (required && !response.headers.has(name)) throw new Error(`${where}: the header ${name} is missing`)
    }
    const type = response.headers.get('content-type')?.split(';')[0]
    const media = type === undefined ? undefined : described.content?.[type]
    if (described.content !== undefined && media === undefined) throw new Error(`${where}: ${type} is not described`)
    if (described.content === undefined && response.body !== null) throw new Error(`${where}: there should be no body`)
    if (isJson(type) && media?.schema !== undefined && request.method !== 'HEAD') {
      const validate = validatorOf(media.schema)
      const body: unknown = await response.clone().json()
      if (!validate(body)) {
        throw new Error(`${where} does not fit: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(body)}`)
      }
    }
    return operation?.operationId
  }
}

function isJson(type: string | undefined): boolean {
  return type === 'application/json' || type?.endsWith('+json') === true
}

const PROBLEM: Described = { $ref: '#/components/responses/Problem' }

/** An answer that no operation describes: of a path or a method that there is not, or of a service that fails. */
function isUnexpected(operation: Operation | undefined, status: number): boolean {
  return status === 405 || status >= 500 || (operation === undefined && status >= 400)
}

function nameOf(reference: string): string {
  return reference.split('/').at(-1) ?? ''
}

/** Rewrites the document's references to the form that ajv resolves. */
function rooted(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"doc#/components/')) as object
}
