// @ts-check
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { monotonicMs } from './monotonic.js'
import { proxy } from './proxy.js'

describe('the proxy', () => {
  /** @type {(() => Promise<unknown>)[]} */
  const closing = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })

  /** A server that answers every message, and records what it received. */
  async function behindProxy() {
    /** @type {string[]} */
    const asked = []
    let closed = 0
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('close', () => {
        closed += 1
      })
      socket.on('data', (chunk) => {
        asked.push(String(chunk))
        socket.write(`re: ${chunk}`)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = /** @type {import('node:net').AddressInfo} */ (server.address())
    const between = await proxy(address.port, () => 0.5)
    const client = connect(between.port, '127.0.0.1').setEncoding('utf8')
    client.on('error', () => {})
    closing.push(
      () => between.close(),
      async () => server.close(),
    )
    /** @param {string} text */
    const ask = async (text) => {
      client.write(text)
      const [answer] = await once(client, 'data')
      return answer
    }
    expect(await ask('hello')).toBe('re: hello')
    return { asked, between, client, ask, closes: () => closed }
  }

  it('forwards half of a request and breaks the connection', async () => {
    const { asked, between, client } = await behindProxy()
    between.breakNextRequests('cut')
    client.write('12345678')
    await once(client, 'close')
    await expect.poll(() => asked).toEqual(['hello', '1234'])
  })

  it('lets a request be executed and loses the reply', async () => {
    const { asked, between, client } = await behindProxy()
    /** @type {string[]} */
    const heard = []
    client.on('data', (text) => heard.push(String(text)))
    between.breakNextRequests('lose')
    client.write('pay')
    await once(client, 'close')
    expect(asked).toEqual(['hello', 'pay'])
    expect(heard).toEqual([])
  })

  it('delays data for a while, in order', async () => {
    const { asked, between, client, ask } = await behindProxy()
    between.delay(60)
    const from = monotonicMs()
    expect(await ask('one')).toBe('re: one')
    expect(monotonicMs() - from).toBeGreaterThanOrEqual(118)
    client.write('two')
    between.heal()
    await sleep(10)
    client.write('three')
    await expect.poll(() => asked.join('')).toBe('helloonetwothree')
  })

  it('breaks open connections and refuses new ones until it is healed', async () => {
    const { between, client } = await behindProxy()
    between.sever()
    await once(client, 'close')
    const refused = connect(between.port, '127.0.0.1')
    refused.on('error', () => {})
    await once(refused, 'close')
    between.heal()
    const again = connect(between.port, '127.0.0.1').setEncoding('utf8')
    again.write('back')
    expect(await once(again, 'data')).toEqual(['re: back'])
    again.destroy()
  })

  it('drops requests: the connection stays open, and stays silent for good', async () => {
    const { asked, between, client } = await behindProxy()
    between.swallow('request')
    client.write('lost')
    await expect.poll(between.swallowed).toBe(1)
    between.heal()
    client.write('also lost')
    await expect.poll(between.swallowed).toBe(2)
    const again = connect(between.port, '127.0.0.1').setEncoding('utf8')
    again.write('heard')
    expect(await once(again, 'data')).toEqual(['re: heard'])
    expect(asked).toEqual(['hello', 'heard'])
    expect(client.closed).toBe(false)
    again.destroy()
  })

  it('drops replies: the request was executed, and the client does not learn of it', async () => {
    const { asked, between, client } = await behindProxy()
    /** @type {string[]} */
    const heard = []
    client.on('data', (text) => heard.push(String(text)))
    between.swallow('reply')
    client.write('pay')
    await expect.poll(between.swallowed).toBe(1)
    between.heal()
    client.write('again')
    await expect.poll(() => asked).toEqual(['hello', 'pay', 'again'])
    expect(heard).toEqual([])
    expect(client.closed).toBe(false)
  })

  it('hides a close while it drops data', async () => {
    const { between, client, closes } = await behindProxy()
    between.swallow('request')
    client.write('lost')
    await expect.poll(between.swallowed).toBe(1)
    client.destroy()
    const again = connect(between.port, '127.0.0.1')
    await once(again, 'connect')
    expect(closes()).toBe(0)
    between.heal()
    await expect.poll(closes).toBeGreaterThan(0)
    again.destroy()
  })
})
