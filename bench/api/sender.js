// @ts-check
/**
 * The client, in a separate process, so that the cost of sending does not count as cost of the service. It prints one
 * JSON line.
 *
 * - `node sender.js import <url> <count>` sends that many schedules as JSON lines.
 * - `node sender.js create <url> <clients> <forMs>` keeps that many requests in flight, first to warm up and then as long
 *   again to measure.
 */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { INPUT } from './input.js'

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

/**
 * Writes requests to raw sockets, so that the client uses as little processor time as possible: on two cores it
 * competes with the service.
 * @param {number} clients
 */
async function rawClients(clients) {
  const { hostname, port } = new URL(url)
  const body = JSON.stringify(INPUT)
  const head = `POST /v1/schedules HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\n`
  const bytes = Buffer.from(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  const open = async () => {
    const socket = connect(Number(port), hostname).setNoDelay(true)
    await once(socket, 'connect')
    return socket
  }
  const sockets = await Promise.all(Array.from({ length: clients }, open))
  return { sockets, bytes }
}

/**
 * Sends one request and checks the answer.
 * @param {import('node:net').Socket} socket
 * @param {Buffer} bytes
 * @returns {Promise<void>}
 */
function askOnce(socket, bytes) {
  return new Promise((resolve, reject) => {
    let text = ''
    const hear = (/** @type {Buffer} */ part) => {
      text += part.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1])
      if (end === -1 || text.length < end + 4 + length) return
      socket.off('data', hear)
      if (text.startsWith('HTTP/1.1 201 ')) resolve()
      else reject(new Error(text))
    }
    socket.on('data', hear)
    socket.write(bytes)
  })
}

async function createMany() {
  const [clients, forMs] = [Number(first), Number(second)]
  const { sockets, bytes } = await rawClients(clients)
  const turn = async (/** @type {number} */ ms) => {
    const startedAt = performance.now()
    let done = 0
    const client = async (/** @type {import('node:net').Socket} */ socket) => {
      for (; performance.now() - startedAt < ms; done += 1) await askOnce(socket, bytes)
    }
    await Promise.all(sockets.map(client))
    return { done, elapsedMs: performance.now() - startedAt }
  }
  // Warms up connections, and the code on both sides.
  await turn(forMs)
  const measured = await turn(forMs)
  for (const socket of sockets) socket.destroy()
  return measured
}

console.log(JSON.stringify(await (mode === 'import' ? importAll() : createMany())))
