// @ts-check
/** A minimal NATS client, independent of Belfry's: requests and answers over the wire protocol. */
import { once } from 'node:events'
import { connect } from 'node:net'

const PATIENCE_MS = 5_000
const INBOX = '_INBOX.belfry'

export class NatsWire {
  #socket
  #buffer = Buffer.alloc(0)
  #asked = 0
  /** @type {Map<string, { resolve: (answer: any) => void, reject: (error: Error) => void }>} */
  #waiting = new Map()

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.#socket = socket
    socket.on('data', (chunk) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk])
      while (this.#next()) {}
    })
    socket.on('error', () => {})
    socket.on('close', () => this.#failAll(new Error('the connection is closed')))
  }

  /** @param {number} port */
  static async connect(port) {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect', { signal: AbortSignal.timeout(PATIENCE_MS) })
    const wire = new NatsWire(socket)
    const about = { verbose: false, pedantic: false, headers: true, no_responders: true, lang: 'test', version: '1' }
    socket.write(`CONNECT ${JSON.stringify(about)}\r\nSUB ${INBOX}.* 1\r\n`)
    return wire
  }

  /**
   * Sends a JetStream API request, and returns the answer.
   * @param {string} subject below `$JS.API`
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  ask(subject, body = {}) {
    this.#asked += 1
    const reply = `${INBOX}.${this.#asked}`
    const text = JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(reply)
        reject(new Error(`no answer to ${subject}`))
      }, PATIENCE_MS)
      const settled = (/** @type {(value: any) => void} */ how) => (/** @type {any} */ value) => {
        clearTimeout(late)
        how(value)
      }
      this.#waiting.set(reply, { resolve: settled(resolve), reject: settled(reject) })
      this.#socket.write(`PUB $JS.API.${subject} ${reply} ${Buffer.byteLength(text)}\r\n${text}\r\n`)
    })
  }

  close() {
    this.#socket.destroy()
  }

  /** Removes one complete line, with its payload, from the received data. */
  #next() {
    const end = this.#buffer.indexOf('\r\n')
    if (end < 0) return false
    const [word = '', subject = '', ...rest] = this.#buffer.subarray(0, end).toString().split(' ')
    if (word !== 'MSG' && word !== 'HMSG') {
      this.#buffer = this.#buffer.subarray(end + 2)
      if (word === 'PING') this.#socket.write('PONG\r\n')
      return true
    }
    const size = Number(rest.at(-1))
    if (this.#buffer.length < end + 2 + size + 2) return false
    const headers = word === 'HMSG' ? Number(rest.at(-2)) : 0
    const payload = this.#buffer.subarray(end + 2 + headers, end + 2 + size)
    this.#buffer = this.#buffer.subarray(end + 2 + size + 2)
    this.#answer(subject, payload.toString())
    return true
  }

  /** @param {string} subject @param {string} text */
  #answer(subject, text) {
    const waiting = this.#waiting.get(subject)
    if (waiting === undefined) return
    this.#waiting.delete(subject)
    if (text === '') return waiting.reject(new Error('no responders'))
    const answer = JSON.parse(text)
    if (answer.error === undefined) waiting.resolve(answer)
    else waiting.reject(new Error(answer.error.description))
  }

  /** @param {Error} error */
  #failAll(error) {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
