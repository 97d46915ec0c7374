// @ts-check
/**
 * The cost of the HTTP API, in two cases:
 *
 * - `import` sends schedules as JSON lines, and is compared with `putMany`. The service runs in this process, so that the
 *   bench can watch its memory.
 * - `create` creates single schedules with many requests in flight, and is compared with as many concurrent
 *   `schedules.put`, which share transactions. The service is `belfry serve` as users run it, with engine and audit
 *   trail.
 *
 * `create` has two more references: a bare Node HTTP server that parses JSON, puts and answers JSON without checks (the
 * cost of HTTP alone), and sequential puts. The client and each contender for `create` are separate processes.
 */
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { clientAddress } from '../dist/cli/serve/client-address.js'
import { HttpListener } from '../dist/cli/serve/http-listener.js'
import { createBelfry } from '../dist/index.js'
import { createServer, tokenAuthorise } from '../dist/server/index.js'
import { INPUT } from './api/input.js'
import { median, rateOf, ratioOf, takeTurns } from './harness/measure.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { storeArguments } from './harness/store-locations.js'
import { openStore, storeSettings } from './harness/stores.js'

const ROUNDS = 3
const TURN_MS = 3_000
const CLIENTS = 50
const PART = 10_000
const SENDER = new URL('./api/sender.js', import.meta.url)
const CONTENDER = fileURLToPath(new URL('./api/contender.js', import.meta.url))
const BELFRY = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))

/** @type {import('./run.js').Bench} */
export default async function api({ store = 'sqlite', n = 100_000, wants }) {
  const settings = { schedules: n, rounds: ROUNDS, clients: CLIENTS, turnMs: TURN_MS }
  reportSettings('api', { store, ...settings, ...(await storeSettings(store)) })
  if (wants('import')) await importLines(store, n)
  const title = `create, ${CLIENTS} in flight`
  if (wants(title)) await createOne(store, title)
}

/**
 * @param {string} name
 * @param {number} n
 */
async function importLines(name, n) {
  /** @type {Memory[]} */
  const memories = []
  const rates = await takeTurns(ROUNDS, {
    ours: () =>
      served(name, async (url) => {
        const watch = watchMemory()
        const { elapsedMs, status, answer } = await ask('import', url, n)
        memories.push(watch())
        if (status !== 200 || answer.created !== n) throw new Error(`the import answered ${JSON.stringify(answer)}`)
        return (n / elapsedMs) * 1_000
      }),
    putMany: () => opened(name, (belfry) => rateOf(n, () => putAll(belfry, n))),
  })
  const [{ earlyMb, peakMb } = { earlyMb: 0, peakMb: 0 }] = memories
  reportRatio('import', name, rates.ours, rates.putMany, `putMany in parts of ${PART}`, { earlyMb, peakMb })
}

/**
 * @param {string} name
 * @param {string} title
 */
async function createOne(name, title) {
  const rates = await takeTurns(ROUNDS, {
    ours: () => withService(name, createMany),
    alone: () => putting(name, 1),
    together: () => putting(name, CLIENTS),
    bare: () => withContender(name, ['bare'], createMany),
  })
  const { ours, together, alone, bare } = rates
  reportRatio(title, name, ours, together, `schedules.put, ${CLIENTS} in flight`, {
    barePerSecond: Math.round(median(bare)),
    ofBare: hundredths(ratioOf(ours, bare)),
    bareRatio: hundredths(ratioOf(bare, together)),
    alonePerSecond: Math.round(median(alone)),
  })
}

/**
 * Opens a store in which an instance has declared the schedules' job, so that any process may create them.
 * @template T
 * @param {string} name
 * @param {(location: import('./harness/store-locations.js').StoreLocation) => Promise<T>} work
 */
async function withStore(name, work) {
  const { store, location, close } = await openStore(name, { jumps: false })
  if (location === undefined) throw new Error(`no other process finds a store on ${name}`)
  const app = { id: 'app', host: 'bench', pid: process.pid, zoneData: '', jobs: [{ name: INPUT.job }] }
  await store.instances.join(app, 60_000)
  await store.instances.leave(app.id)
  const result = await work(location)
  await close()
  return result
}

/**
 * Starts `belfry serve`.
 * @template T
 * @param {string} name
 * @param {(said: { url: string }) => Promise<T>} work
 */
function withService(name, work) {
  return withStore(name, async (location) => {
    const child = spawn(process.execPath, [BELFRY, 'serve', '--port', '0', ...storeArguments(location)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const gone = once(child, 'exit')
    const url = await new Promise((resolve, reject) => {
      let text = ''
      child.stdout.on('data', (part) => {
        text += part
        const [, found] = /listening on (http:\S+)/.exec(text) ?? []
        if (found !== undefined) resolve(found)
      })
      child.once('exit', () => reject(new Error(`belfry serve ended before it listened: ${text}`)))
    })
    const result = await work({ url })
    child.kill('SIGTERM')
    await gone
    return result
  })
}

/**
 * Runs a contender in a separate process, and passes its first message to `work`.
 * @template T
 * @param {string} name
 * @param {readonly string[]} args
 * @param {(said: { url: string, perSecond: number }) => T | Promise<T>} work
 */
function withContender(name, args, work) {
  return withStore(name, async (location) => {
    const child = fork(CONTENDER, [JSON.stringify(location), ...args])
    const gone = once(child, 'exit')
    const tooSoon = gone.then(() => Promise.reject(new Error(`${args[0]} ended before it said anything`)))
    const [said] = await Promise.race([once(child, 'message'), tooSoon])
    const result = await work(said)
    if (said.url !== undefined) child.send('end')
    await gone
    return result
  })
}

/** @param {string} name @param {number} clients */
function putting(name, clients) {
  return withContender(name, ['put', String(clients), String(TURN_MS)], ({ perSecond }) => perSecond)
}

/** @param {{ url: string }} server */
async function createMany({ url }) {
  const { done, elapsedMs } = await ask('create', url, CLIENTS, TURN_MS)
  return (done / elapsedMs) * 1_000
}

/**
 * @param {string} title
 * @param {string} store
 * @param {number[]} ours
 * @param {number[]} theirs
 * @param {string} reference
 * @param {object} [details]
 */
function reportRatio(title, store, ours, theirs, reference, details = {}) {
  const [perSecond, referencePerSecond] = [Math.round(median(ours)), Math.round(median(theirs))]
  const ratio = hundredths(ratioOf(ours, theirs))
  report({ bench: 'api', case: title, store, perSecond, reference, referencePerSecond, ratio, ...details })
}

/** @param {import('../dist/index.js').Belfry} belfry @param {number} n */
async function putAll(belfry, n) {
  for (let at = 0; at < n; at += PART) {
    const size = Math.min(PART, n - at)
    await belfry.schedules.putMany(Array.from({ length: size }, (_, each) => [`bench/${at + each}`, INPUT]))
  }
}

/**
 * @template T
 * @param {string} name
 * @param {(belfry: import('../dist/index.js').Belfry) => Promise<T>} work
 */
async function opened(name, work) {
  const bench = await openStore(name, { jumps: false })
  const belfry = createBelfry({ store: bench.store })
  belfry.job('noop', { run: () => {} })
  try {
    return await work(belfry)
  } finally {
    await bench.close()
  }
}

/**
 * @template T
 * @param {string} name
 * @param {(url: string) => Promise<T>} work
 */
function served(name, work) {
  return opened(name, async (belfry) => {
    const server = createServer(belfry, { authorise: tokenAuthorise(belfry.records, { open: true }) })
    const listener = new HttpListener({ fetch: server.fetch, addressOf: clientAddress([]) })
    const { port } = await listener.listen('127.0.0.1', 0)
    try {
      return await work(`http://127.0.0.1:${port}`)
    } finally {
      await server.close()
      await listener.close(0)
    }
  })
}

/** @param {readonly (string | number)[]} args */
async function ask(...args) {
  const child = spawn(process.execPath, [SENDER.pathname, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (part) => {
    text += part
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  if (code !== 0) throw new Error(`the sender ended with ${code}`)
  return JSON.parse(text)
}

/**
 * @typedef {{ earlyMb: number, peakMb: number }} Memory
 * @returns {() => Memory} The peak of heap and buffers, within the first 1.5 s and over the whole import.
 */
function watchMemory() {
  let [early, peak] = [0, 0]
  const startedAt = performance.now()
  const timer = setInterval(() => {
    const { heapUsed, external } = process.memoryUsage()
    peak = Math.max(peak, heapUsed + external)
    if (performance.now() - startedAt < 1_500) early = peak
  }, 50)
  return () => {
    clearInterval(timer)
    return { earlyMb: Math.round(early / 2 ** 20), peakMb: Math.round(peak / 2 ** 20) }
  }
}
