/**
 * Opens the sinks of the config file.
 *
 *     sinks:
 *       orders: { type: webhook, url: https://shop.example/hooks, secrets: [{ env: ORDERS_SECRET }] }
 *
 * Secrets come from the environment, as `{ env: NAME }`. A secret in the file is refused, and errors never print one.
 */
import { failure, quote } from '../../core/errors.js'
import type { Sink } from '../../core/sink.js'

export type SinksConfig = Readonly<Record<string, unknown>>

type Env = Readonly<Record<string, string | undefined>>
type Options = Readonly<Record<string, never>>

const KINDS: Readonly<Record<string, (options: Options) => Promise<Sink>>> = {
  kafka: async (options) => (await import('../../sinks/kafka/index.js')).kafka(options as never),
  log: async (options) => (await import('../../sinks/log.js')).log(options),
  nats: async (options) => (await import('../../sinks/nats/index.js')).nats(options as never),
  rabbitmq: async (options) => (await import('../../sinks/rabbitmq/index.js')).rabbitmq(options),
  'redis-stream': async (options) => (await import('../../sinks/redis-stream/index.js')).redisStream(options as never),
  webhook: async (options) => (await import('../../sinks/webhook/index.js')).webhook(options),
}

const SECRET = /secret|passw|token|credential|api-?_?key|authorization|cookie|^pass$|seed|jwt/i
const MAX_DEPTH = 10

export async function openSinks(config: SinksConfig, env: Env): Promise<Record<string, Sink>> {
  const sinks: Record<string, Sink> = {}
  for (const [name, given] of Object.entries(config)) sinks[name] = await openSink(name, given, env)
  return sinks
}

async function openSink(name: string, given: unknown, env: Env): Promise<Sink> {
  const where = `sinks.${name}`
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw failure('OPTION_INVALID', `${where} is ${quote(given)}; it must be an object with a type`)
  }
  // A config file in code may create the sink itself.
  if ('deliver' in given) return given as Sink
  const { type, ...options } = given as { readonly type?: unknown }
  const make = typeof type === 'string' && Object.hasOwn(KINDS, type) ? KINDS[type] : undefined
  if (make === undefined) {
    throw failure('OPTION_INVALID', `${where}: type is ${quote(type)}; allowed are ${Object.keys(KINDS).join(', ')}`)
  }
  return located(where, () => make(resolved(options, where, false, env, 0) as Options))
}

/** The options with each `{ env: NAME }` replaced by the variable's value. */
function resolved(value: unknown, where: string, isSecret: boolean, env: Env, depth: number): unknown {
  if (depth > MAX_DEPTH) throw failure('OPTION_INVALID', `${where}: nested more than ${MAX_DEPTH} deep`)
  if (typeof value === 'string') return plainText(value, where, isSecret)
  if (Array.isArray(value)) {
    return value.map((item, at) => resolved(item, `${where}[${at}]`, isSecret, env, depth + 1))
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  if (entries.length === 1 && entries[0]?.[0] === 'env') return fromEnv(entries[0][1], where, env)
  return Object.fromEntries(
    entries.map(([key, member]) => {
      const secret = isSecret || SECRET.test(key)
      return [key, resolved(member, `${where}.${key}`, secret, env, depth + 1)]
    }),
  )
}

function plainText(text: string, where: string, isSecret: boolean): string {
  if (isSecret) {
    throw failure('OPTION_INVALID', `${where} is a secret in the file: give { env: NAME } instead`)
  }
  if (/-----BEGIN [A-Z ]*PRIVATE KEY/.test(text)) {
    throw failure('OPTION_INVALID', `${where} holds a private key in the file: give { env: NAME } instead`)
  }
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/\s]*:[^/\s]*@/i.test(text)) {
    throw failure('OPTION_INVALID', `${where} holds a password in the file: give { env: NAME } instead`)
  }
  return text
}

function fromEnv(name: unknown, where: string, env: Env): string {
  if (typeof name !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    throw failure('OPTION_INVALID', `${where}: env is ${quote(name)}; it must be the name of a variable`)
  }
  const value = env[name]
  if (value !== undefined && value !== '') return value
  throw failure('OPTION_INVALID', `${where}: the environment has no ${name}`)
}

async function located(where: string, make: () => Promise<Sink>): Promise<Sink> {
  try {
    return await make()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw failure('OPTION_INVALID', why.startsWith(where) ? why : `${where}: ${why}`, { cause: error })
  }
}
