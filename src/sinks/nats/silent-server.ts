/**
 * Detects a silent NATS server. A healthy server sends INFO as soon as a client connects. A hanging server, or a proxy
 * in front of a dead one, accepts the connection and sends nothing. The NATS client would leave each such connection
 * open for ever, so this check connects first, with a socket that it closes.
 */
import { connect } from 'node:net'

const DEFAULT_PORT = 4222

/**
 * Resolves to true if the server accepted the connection and sent nothing for this long. Other failures are left to the
 * client.
 */
export function isSilent(server: string, forMs: number): Promise<boolean> {
  const text = /^[a-z]+:\/\//i.test(server) ? server : `nats://${server}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['nats:', 'tls:'].includes(url.protocol)) return Promise.resolve(false)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise((resolve) => {
    const socket = connect({ host, port: url.port === '' ? DEFAULT_PORT : Number(url.port) })
    const answer = (silent: boolean) => {
      resolve(silent)
      socket.destroy()
    }
    socket.setTimeout(forMs, () => answer(true))
    socket.once('data', () => answer(false))
    socket.on('error', () => answer(false))
    socket.once('close', () => answer(false))
  })
}
