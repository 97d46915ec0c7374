// @ts-check
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { webhook } from '../../dist/sinks/webhook/index.js'

/**
 * @param {import('../sinks.js').Batching} batching
 * @returns {Promise<import('../sinks.js').Broker>}
 */
export async function openWebhook(batching) {
  const server = createServer((incoming, answer) => {
    incoming.resume()
    incoming.on('end', () => {
      answer.statusCode = 204
      answer.end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('there is no port')
  const url = `http://127.0.0.1:${address.port}/hooks`
  const agent = new Agent({ keepAlive: true, maxSockets: batching.concurrency })
  return {
    sink: webhook({ url, allow: ['127.0.0.1/32'], ...batching }),
    reference: `node:http over ${batching.concurrency} connections that are kept`,
    send: (events) => Promise.all(events.map((event) => post(url, agent, JSON.stringify(event)))),
    async close() {
      agent.destroy()
      server.closeAllConnections()
      server.close()
    },
  }
}

/**
 * @param {string} url
 * @param {Agent} agent
 * @param {string} body
 */
async function post(url, agent, body) {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const sent = request(url, { method: 'POST', agent, headers })
  sent.end(body)
  const [answer] = await once(sent, 'response')
  answer.resume()
  await once(answer, 'end')
}
