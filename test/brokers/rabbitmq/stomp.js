// @ts-check
/** A minimal STOMP client, independent of Belfry's: empties a queue over another protocol of the broker. */
import { once } from 'node:events'
import { connect } from 'node:net'

const READ_WITHIN_MS = 120_000
const END = Buffer.from([0])

/**
 * Reads a queue up to the message that the caller appended last. The broker's count of messages cannot tell the end: it
 * is seconds old.
 * @param {number} port
 * @param {string} queue
 * @param {string} last the body of that message
 * @returns {Promise<string[]>} the bodies before it, in the order in which they came
 */
export async function drain(port, queue, last) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const bodies = /** @type {string[]} */ ([])
  let buffer = Buffer.alloc(0)
  const done = new Promise((resolve, reject) => {
    const isTooLong = () =>
      reject(new Error(`STOMP: ${bodies.length} messages in ${READ_WITHIN_MS} ms, and no last one`))
    const patience = setTimeout(isTooLong, READ_WITHIN_MS)
    patience.unref()
    socket.on('data', (chunk) => {
      buffer = Buffer.concat([buffer, chunk])
      for (let frame = next(); frame !== undefined; frame = next()) {
        if (frame.command === 'CONNECTED') subscribe()
        else if (frame.command !== 'MESSAGE') reject(new Error(`STOMP: ${frame.command}: ${frame.body}`))
        else if (frame.body === last) resolve(undefined)
        else bodies.push(frame.body)
      }
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('STOMP: the connection is closed')))
  })

  function subscribe() {
    const headers = ['id:0', `destination:/amq/queue/${queue}`, 'ack:auto']
    socket.write(`SUBSCRIBE\n${headers.join('\n')}\n\n\0`)
  }

  /** The first complete frame of the received data. */
  function next() {
    while (buffer[0] === 10) buffer = buffer.subarray(1)
    const head = buffer.indexOf('\n\n')
    if (head < 0) return undefined
    const [command = '', ...lines] = buffer.subarray(0, head).toString().split('\n')
    const length = lines.find((line) => line.startsWith('content-length:'))?.slice('content-length:'.length)
    const end = length === undefined ? buffer.indexOf(END, head + 2) : head + 2 + Number(length)
    if (end < 0 || end >= buffer.length) return undefined
    const body = buffer.subarray(head + 2, end).toString()
    buffer = buffer.subarray(end + 1)
    return { command, body }
  }

  socket.write('CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0')
  try {
    await done
  } finally {
    socket.removeAllListeners('close')
    socket.destroy()
  }
  return bodies
}
