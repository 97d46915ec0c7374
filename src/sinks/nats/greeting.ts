/**
 * Whether a NATS server says anything. It greets whoever connects; one that hangs, or a proxy before one that is gone,
 * takes connections and says nothing. The client would leave each of those connections open, for ever: so such a server is
 * told by a connection of our own, which is closed.
 */
import { connect } from 'node:net'

const DEFAULT_PORT = 4222

/** True when it was silent for that long. What cannot be reached, or is not spoken to like this, is the client's to find out. */
export function isMute(server: string, forMs: number): Promise<boolean> {
  const text = /^[a-z]+:\/\//i.test(server) ? server : `nats://${server}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['nats:', 'tls:'].includes(url.protocol)) return Promise.resolve(false)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise((resolve) => {
    const socket = connect({ host, port: url.port === '' ? DEFAULT_PORT : Number(url.port) })
    const answer = (mute: boolean) => {
      resolve(mute)
      socket.destroy()
    }
    socket.setTimeout(forMs, () => answer(true))
    socket.once('data', () => answer(false))
    socket.on('error', () => answer(false))
    socket.once('close', () => answer(false))
  })
}
