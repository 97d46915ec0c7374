/** The connection errors that a client has emitted. */
export interface ClientErrors {
  error?: unknown
  /** Called with each error, while the connection is being opened. */
  tell?: ((error: unknown) => void) | undefined
}

const heardOf = new WeakMap<object, ClientErrors>()

/**
 * Listens to a client's `error` events. An error also rejects the commands in flight, but without a listener it would
 * end the process.
 */
export function hearErrors(client: { on(event: 'error', listener: (error: unknown) => void): unknown }): ClientErrors {
  const known = heardOf.get(client)
  if (known !== undefined) return known
  const heard: ClientErrors = {}
  heardOf.set(client, heard)
  client.on('error', (error) => {
    heard.error = error
    heard.tell?.(error)
  })
  return heard
}
