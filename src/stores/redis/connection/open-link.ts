/**
 * Connects within the time limit of a command. The client itself would retry for ever, and it reports the reason only
 * by its `error` event.
 */
import type { Clock } from '../../../core/clock.js'
import { failure } from '../../../core/errors.js'
import type { Link } from './driver.js'
import { isFinal, storeError } from './errors.js'

export async function openLink(link: Link, clock: Clock, timeoutMs: number, prefix: string): Promise<void> {
  const { heard } = link
  let cancel = () => {}
  const gaveUp = new Promise<never>((_, reject) => {
    cancel = clock.after(timeoutMs, () => reject(heard.error ?? silence(prefix, timeoutMs)))
    // Some errors stay until the configuration changes, such as a wrong password.
    heard.tell = (error) => {
      if (isFinal(error)) reject(error)
    }
  })
  try {
    await Promise.race([link.open(), gaveUp])
  } catch (error) {
    link.abandon()
    // The error that the client emitted names the cause; a timeout does not.
    throw storeError(isFinal(heard.error) ? heard.error : error, prefix)
  } finally {
    cancel()
    heard.tell = undefined
  }
}

function silence(prefix: string, timeoutMs: number): Error {
  return failure(
    'STORE_UNREACHABLE',
    `the Redis server of "${prefix}" has not answered for ${timeoutMs} ms: check the server, the network and the URL`,
  )
}
