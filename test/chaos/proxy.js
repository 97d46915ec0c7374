// @ts-check
/**
 * A TCP proxy that breaks connections on request: in the middle of a request, after the request was executed and before
 * its reply is forwarded, or all connections at once. It can also delay them, or make them half-open: then it drops one
 * direction without telling either side. Such a connection stays silent for good, as behind a firewall that has
 * forgotten it; meanwhile neither side learns that the other has closed it.
 */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { monotonicMs } from './monotonic.js'

/** @typedef {import('node:net').Socket} Socket */
/** @typedef {'cut' | 'lose'} Break */
/** @typedef {'request' | 'reply'} Way */

class Connection {
  /** @type {Break | undefined} */
  pendingBreak
  #asked = false
  /** @type {Record<Way, { to: Socket, chunk: Buffer, dueAt: number }[]>} */
  #delayed = { request: [], reply: [] }
  /** The directions in which data was dropped. What follows would be garbled, so it is dropped as well. */
  #isSilent = { request: false, reply: false }
  #random
  #faults

  /**
   * @param {Socket} client
   * @param {Socket} server
   * @param {() => number} random
   * @param {NetworkFaults} faults
   * @param {() => void} onGone
   */
  constructor(client, server, random, faults, onGone) {
    this.client = client
    this.server = server
    this.#random = random
    this.#faults = faults
    client.on('data', (chunk) => this.#request(chunk))
    server.on('data', (chunk) => this.#reply(chunk))
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        if (client.closed && server.closed) onGone()
        else if (!this.#isHalfOpen) this.destroy()
      })
    }
  }

  /** While the network is silent, neither side may learn of a close. */
  get #isHalfOpen() {
    return this.#faults.swallows !== undefined && (this.#isSilent.request || this.#isSilent.reply)
  }

  /** From now on this connection carries nothing, and neither side learns why. */
  vanish() {
    this.#isSilent = { request: true, reply: true }
  }

  /** Ends the silence of the network: now a side learns that the other has closed. */
  heal() {
    if (this.client.closed || this.server.closed) this.destroy()
  }

  destroy() {
    this.client.destroy()
    this.server.destroy()
  }

  /** @param {Buffer} chunk */
  #request(chunk) {
    this.#asked = true
    if (this.pendingBreak !== 'cut') return this.#pass('request', this.server, chunk)
    // Part of the request arrives, the rest never does.
    const part = chunk.subarray(0, Math.floor(this.#random() * chunk.length))
    this.server.write(part, () => this.destroy())
  }

  /** @param {Buffer} chunk */
  #reply(chunk) {
    if (this.pendingBreak === 'lose' && this.#asked) return this.destroy()
    this.#asked = false
    this.#pass('reply', this.client, chunk)
  }

  /** Forwards chunks in order, however the delay changes. @param {Way} way @param {Socket} to @param {Buffer} chunk */
  #pass(way, to, chunk) {
    if (this.#faults.swallows === way) this.#isSilent[way] = true
    if (this.#isSilent[way]) {
      this.#faults.swallowed += 1
      return
    }
    const queue = this.#delayed[way]
    queue.push({ to, chunk, dueAt: monotonicMs() + this.#faults.delayMs })
    if (queue.length === 1) this.#forwardDue(way)
  }

  /** Each direction has one timer, because the timers of two chunks may fire in the wrong order. @param {Way} way */
  #forwardDue(way) {
    const queue = this.#delayed[way]
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      const waitMs = next.dueAt - monotonicMs()
      if (waitMs > 0) {
        setTimeout(() => this.#forwardDue(way), waitMs)
        return
      }
      next.to.write(next.chunk)
      queue.shift()
    }
  }
}

/**
 * The current network faults, shared by all connections of a proxy.
 * @typedef {{ delayMs: number, swallows: Way | undefined, swallowed: number }} NetworkFaults
 */

/**
 * @param {number | (() => number)} upstream a port of this machine, asked for each connection
 * @param {() => number} random
 */
export async function proxy(upstream, random) {
  /** @type {Set<Connection>} */
  const connections = new Set()
  /** @type {NetworkFaults} */
  const faults = { delayMs: 0, swallows: undefined, swallowed: 0 }
  let refusing = false
  const server = createServer((client) => {
    if (refusing) {
      client.on('error', () => {})
      client.destroy()
      return
    }
    const onGone = () => connections.delete(connection)
    const connection = new Connection(
      client,
      connect(typeof upstream === 'number' ? upstream : upstream(), '127.0.0.1'),
      random,
      faults,
      onGone,
    )
    connections.add(connection)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())

  return {
    port: address.port,
    /** Breaks every open connection at its next request. @param {Break} how */
    breakNextRequests(how) {
      for (const connection of connections) connection.pendingBreak = how
    },
    sever() {
      refusing = true
      for (const connection of [...connections]) connection.destroy()
    },
    heal() {
      refusing = false
      faults.delayMs = 0
      faults.swallows = undefined
      for (const connection of [...connections]) connection.heal()
    },
    /** @param {number} ms */
    delay(ms) {
      faults.delayMs = ms
    },
    /** Makes all open connections silent for good. New ones work. */
    vanish() {
      for (const connection of connections) connection.vanish()
    },
    /** Drops all data in this direction; connections stay open. @param {Way} way */
    swallow(way) {
      faults.swallows = way
    },
    /** The number of dropped chunks. */
    swallowed: () => faults.swallowed,
    async close() {
      server.close()
      for (const connection of [...connections]) connection.destroy()
      await once(server, 'close')
    },
  }
}

/**
 * Injects a connection fault by the proxy of one process. Resolves when the fault is over.
 * @param {Awaited<ReturnType<typeof proxy>> | undefined} own
 * @param {import('./plan.js').Fault} fault
 * @param {(ms: number) => Promise<void>} sleep
 */
export async function injectConnectionFault(own, { kind, forMs }, sleep) {
  if (own === undefined) return
  if (kind === 'cut' || kind === 'lose') return own.breakNextRequests(kind)
  if (kind === 'sever') own.sever()
  else if (kind === 'mute') own.swallow('request')
  else if (kind === 'deaf') own.swallow('reply')
  else own.delay(forMs / 2)
  await sleep(forMs)
  own.heal()
}
