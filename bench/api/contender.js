// @ts-check
/**
 * A contender in a separate process, so that no other contender warms up its code or deoptimises it:
 *
 * - `bare` is a Node server that parses JSON, puts and answers JSON without checks. It reports its URL, and ends on a
 *   message.
 * - `put` keeps a number of puts in flight, first to warm up and then as long again to measure. It reports the rate per
 *   second.
 */
import { createServer as createBareServer } from 'node:http'
import { newId } from '../../dist/core/names/new-id.js'
import { createBelfry } from '../../dist/index.js'
import { inFlight } from '../harness/measure.js'
import { storeAt } from '../harness/store-locations.js'
import { INPUT } from './input.js'

const [location = '', role = '', first = '', second = ''] = process.argv.slice(2)
const store = storeAt(JSON.parse(location))
await store.open()
const belfry = createBelfry({ store })
belfry.job('noop', { run: () => {} })

if (role === 'put') process.send?.({ perSecond: await put(Number(first), Number(second)) })
else {
  const { port, close } = await bare()
  process.send?.({ url: `http://127.0.0.1:${port}` })
  await new Promise((resolve) => process.once('message', resolve))
  await close()
}
await store.close()
process.disconnect()

/** @param {number} clients @param {number} forMs */
async function put(clients, forMs) {
  let made = 0
  const one = () => belfry.schedules.put(`one/${made++}`, INPUT)
  await inFlight(clients, forMs, one)
  return inFlight(clients, forMs, one)
}

async function bare() {
  const server = createBareServer((request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (part) => {
      text += part
    })
    request.on('end', async () => {
      const body = JSON.stringify(await belfry.schedules.put(newId(), JSON.parse(text)))
      response
        .writeHead(201, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
        .end(body)
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const address = server.address()
  const close = () => new Promise((resolve) => server.close(resolve).closeAllConnections())
  return { port: typeof address === 'object' ? address?.port : undefined, close }
}
