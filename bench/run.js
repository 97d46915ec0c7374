// @ts-check
/**
 * `npm run bench -- <name> [--store S] [--n N] [--only TEXT]`: every file beside this one is a bench with the file's
 * name. Standard output has only JSON lines.
 */
import { readdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { installPeers } from './harness/peers.js'
import { stopPostgres } from './harness/postgres.js'
import { stopRedis } from './harness/redis.js'
import { UsageError } from './harness/usage-error.js'

/**
 * @typedef {object} BenchOptions
 * @property {string | undefined} store
 * @property {number | undefined} n
 * @property {(title: string) => boolean} wants Whether a case is selected.
 * @typedef {(options: BenchOptions) => Promise<void>} Bench
 */

const HERE = new URL('./', import.meta.url)

/** @returns {string[]} */
function benchNames() {
  return readdirSync(HERE)
    .filter((file) => file.endsWith('.js') && file !== 'run.js')
    .map((file) => file.slice(0, -'.js'.length))
    .sort()
}

/**
 * @param {string} problem
 * @returns {never}
 */
function refuse(problem) {
  console.error(
    `${problem}\nusage: npm run bench -- <name> [--store S] [--n N] [--only TEXT]\nbenches: ${benchNames().join(', ')}`,
  )
  process.exit(2)
}

function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: { store: { type: 'string' }, n: { type: 'string' }, only: { type: 'string' } },
    })
    return { positionals, store: values.store, n: values.n, only: values.only ?? '' }
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

const { positionals, store, n, only } = readArguments()
const [name] = positionals
if (name === undefined) refuse('which bench?')
if (positionals.length > 1) refuse(`one bench at a time, not ${positionals.join(' and ')}`)
if (!benchNames().includes(name)) refuse(`bench "${name}" is unknown`)
if (n !== undefined && !/^[1-9]\d{0,8}$/.test(n)) refuse(`--n ${n} is not a count`)

installPeers()
/** @type {{ default: Bench }} */
const bench = await import(new URL(`${name}.js`, HERE).href)
try {
  const wants = (/** @type {string} */ title) => title.includes(only)
  await bench.default({ store, n: n === undefined ? undefined : Number(n), wants })
} catch (error) {
  if (error instanceof UsageError) refuse(error.message)
  throw error
} finally {
  await stopPostgres()
  await stopRedis()
}
