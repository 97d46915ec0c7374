// @ts-check
/**
 * A TCP proxy that breaks connections when it is told to: in the middle of a request, or after the request was carried
 * out and before its reply is passed on, or all at once; and one that is slow.
 */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { monotonicMs } from './monotonic.js'

/** @typedef {import('node:net').Socket} Socket */
/** @typedef {'cut' | 'lose'} Doom */

class Connection {
  /** @type {Doom | undefined} */
  doom
  #asked = false
  #dueAt = { request: 0, reply: 0 }
  #random
  #delayMs

  /**
   * @param {Socket} client
   * @param {Socket} server
   * @param {() => number} random
   * @param {() => number} delayMs
   */
  constructor(client, server, random, delayMs) {
    this.client = client
    this.server = server
    this.#random = random
    this.#delayMs = delayMs
    client.on('data', (chunk) => this.#request(chunk))
    server.on('data', (chunk) => this.#reply(chunk))
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => this.destroy())
    }
  }

  destroy() {
    this.client.destroy()
    this.server.destroy()
  }

  /** @param {Buffer} chunk */
  #request(chunk) {
    this.#asked = true
    if (this.doom !== 'cut') return this.#pass('request', this.server, chunk)
    // Some of it arrives, the rest never does.
    const part = chunk.subarray(0, Math.floor(this.#random() * chunk.length))
    this.server.write(part, () => this.destroy())
  }

  /** @param {Buffer} chunk */
  #reply(chunk) {
    if (this.doom === 'lose' && this.#asked) return this.destroy()
    this.#asked = false
    this.#pass('reply', this.client, chunk)
  }

  /** In order, however the delay changes. @param {'request' | 'reply'} way @param {Socket} to @param {Buffer} chunk */
  #pass(way, to, chunk) {
    const now = monotonicMs()
    const dueAt = Math.max(this.#dueAt[way], now + this.#delayMs())
    this.#dueAt[way] = dueAt
    if (dueAt <= now) to.write(chunk)
    else setTimeout(() => to.write(chunk), dueAt - now)
  }
}

/**
 * @param {number} upstream a port of this machine
 * @param {() => number} random
 */
export async function proxy(upstream, random) {
  /** @type {Set<Connection>} */
  const connections = new Set()
  let delayMs = 0
  let refusing = false
  const server = createServer((client) => {
    if (refusing) {
      client.on('error', () => {})
      client.destroy()
      return
    }
    const connection = new Connection(client, connect(upstream, '127.0.0.1'), random, () => delayMs)
    connections.add(connection)
    client.on('close', () => connections.delete(connection))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())

  return {
    port: address.port,
    /** Every connection that there is now breaks with its next request. @param {Doom} how */
    doom(how) {
      for (const connection of connections) connection.doom = how
    },
    sever() {
      refusing = true
      for (const connection of [...connections]) connection.destroy()
    },
    heal() {
      refusing = false
      delayMs = 0
    },
    /** @param {number} ms */
    delay(ms) {
      delayMs = ms
    },
    async close() {
      server.close()
      for (const connection of [...connections]) connection.destroy()
      await once(server, 'close')
    },
  }
}

/**
 * What can be done to the connections of one process, by the proxy that it has. Resolves when it is over.
 * @param {Awaited<ReturnType<typeof proxy>> | undefined} own
 * @param {import('./plan.js').Fault} fault
 * @param {(ms: number) => Promise<void>} sleep
 */
export async function strikeConnections(own, { kind, forMs }, sleep) {
  if (own === undefined) return
  if (kind === 'cut' || kind === 'lose') return own.doom(kind)
  if (kind === 'sever') own.sever()
  else own.delay(forMs / 2)
  await sleep(forMs)
  own.heal()
}
