/** What a client said of its connections. */
export interface ClientErrors {
  error?: unknown
  /** Called with each error, while the connection is being opened. */
  tell?: ((error: unknown) => void) | undefined
}

const heardOf = new WeakMap<object, ClientErrors>()

/** Errors of a connection reject the commands that were sent; without a listener they would also end the process. */
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
