// @ts-check
/**
 * Who asks: a process of its own, so that what it takes to ask is not counted as what it takes to answer.
 * `node sender.js import <url> <count>` sends lines; `node sender.js create <url> <clients> <forMs>` keeps requests under way, for a while to
 * warm up and then as long again to measure.
 * Answers with one JSON line.
 */
import { Agent, request } from 'node:http'
import { Readable } from 'node:stream'

const INPUT = { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', job: 'noop', payload: { user: 1234, region: 'eu' } }
const LINES_A_CHUNK = 200
const [mode = '', url = '', first = '', second = ''] = process.argv.slice(2)

/** @param {number} count */
function* lines(count) {
  const rest = JSON.stringify(INPUT).slice(1)
  for (let at = 0; at < count; at += LINES_A_CHUNK) {
    const size = Math.min(LINES_A_CHUNK, count - at)
    yield Array.from({ length: size }, (_, n) => `{"id":"bench/${at + n}",${rest}\n`).join('')
  }
}

/**
 * @param {string} path
 * @param {Record<string, string>} headers
 * @param {Agent} agent
 * @param {string | Readable} body
 * @returns {Promise<{ status: number, text: string }>}
 */
function post(path, headers, agent, body) {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method: 'POST', headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (/** @type {string} */ part) => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    if (typeof body === 'string') sent.end(body)
    else body.pipe(sent)
  })
}

async function importAll() {
  const startedAt = performance.now()
  const type = { 'content-type': 'application/x-ndjson' }
  const { status, text } = await post('/v1/schedules:import', type, new Agent(), Readable.from(lines(Number(first))))
  return { elapsedMs: performance.now() - startedAt, status, answer: JSON.parse(text) }
}

async function createMany() {
  const [clients, forMs] = [Number(first), Number(second)]
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const body = JSON.stringify(INPUT)
  const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
  const turn = async (/** @type {number} */ ms) => {
    const startedAt = performance.now()
    let done = 0
    const client = async () => {
      for (; performance.now() - startedAt < ms; done += 1) {
        const { status, text } = await post('/v1/schedules', headers, agent, body)
        if (status !== 201) throw new Error(`${status}: ${text}`)
      }
    }
    await Promise.all(Array.from({ length: clients }, client))
    return { done, elapsedMs: performance.now() - startedAt }
  }
  // Connections, and code that nobody has run yet on either side.
  await turn(forMs)
  const measured = await turn(forMs)
  agent.destroy()
  return measured
}

console.log(JSON.stringify(await (mode === 'import' ? importAll() : createMany())))
